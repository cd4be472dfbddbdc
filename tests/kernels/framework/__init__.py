"""Tests of the framework: which backend a call takes, how an operation is registered, what its specification must hold.

Values of operations are compared in `tests.kernels.measure`.
"""
