"""Proofs about a trainer: acceptance gates, reproducibility, comparison of runs and of a device's promises.

Measurements of speed are in `trainer.bench.training_benchmark`.
"""
