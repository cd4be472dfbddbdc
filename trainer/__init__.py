"""The trainer: the model, its data loading, training sessions, checkpoints, and the command line.

It reads snapshots that `pipeline` wrote and calls operations of `kernels`; the asset of a training is in `assets`.
"""
