"""Measurements of kernels: parity with the reference, benchmarks, tuning, and the rows that store them.

Training steps are measured in `trainer.bench.training_benchmark`.
"""
