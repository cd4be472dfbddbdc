"""Experiments of minutes with small models: `make learn` and `make showcase`, which no test runs.

Figures that are published are in `tests.benchmarks`.
"""
