"""The stages of a build, a folder each, and STAGES, which declares them in their order.

Each holds the work of its stage alone. The engine that runs them is `pipeline.build`; their gates are in `pipeline.contracts`.
"""
