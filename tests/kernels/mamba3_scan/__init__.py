"""Tests of the Mamba-3 scan against its recurrence, step by step.

Its block is tested in `tests.trainer.model.blocks`, its Triton kernels by parity in `tests.kernels.measure`.
"""
