"""Tests of all operations by rule, in Triton's interpreter and on a GPU, and of the programs that measure them.

What only one operation does is in the folder of `tests.kernels` that has its name; training steps are in `tests.trainer.bench`.
"""
