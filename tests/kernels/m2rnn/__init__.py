"""Tests of the M2RNN scan against a loop over scalars.

Its block is tested in `tests.trainer.model.blocks`, its Triton kernels by parity in `tests.kernels.measure`.
"""
