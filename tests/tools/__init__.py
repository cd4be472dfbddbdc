"""Programs that are no tests: acceptance phases, first light, light imports, renamed names, kill campaigns, kernels compiled ahead.

What a test imports to make its input is in `tests.support`; figures are in `tests.benchmarks`.
"""
