"""Figures of the loader, checkpoints and training steps, and the page of GPU rows.

Figures of building a snapshot are in `tests.benchmarks.pipeline`; GPU rows are made in `trainer.bench`.
"""
