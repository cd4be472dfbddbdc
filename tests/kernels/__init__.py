"""Tests of operations that say more of one than its parity does.

Parity of every operation with its reference, and benchmarks, are in `tests.kernels.measure`.
"""
