"""Tests of optimizers by hand, and against torch and a decomposition.

Steps that call them are in `tests.trainer.train`.
"""
