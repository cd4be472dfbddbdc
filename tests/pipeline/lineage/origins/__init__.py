"""Tests of origins: each token leads to the bytes of the file it is from, and back.

Tokens by the thousand are traced by `python -m tests.benchmarks`, in `tests.benchmarks.pipeline`.
"""
