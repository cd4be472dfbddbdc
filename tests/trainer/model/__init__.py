"""Tests of the model: laws of every block and of the whole stack, each attention backend, ranks.

The formula of each block is in `tests.trainer.model.blocks`; operations are in `tests.kernels`.
"""
