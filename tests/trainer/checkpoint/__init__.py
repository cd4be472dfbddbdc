"""Tests of checkpoints: what they hold, how they are saved, found, resumed, exported and given up.

Runs that are stopped and resumed are in `tests.trainer.train`; damage of every kind of stored file is in `tests.faults`.
"""
