"""Measurements of kernels: parity with the reference, benchmarks, tuning, and the rows they are kept in.

Training steps are measured in `trainer.bench.rows`.
"""
