"""Ranks that are forked from one process: steps of a sharded model, and checkpoints that they save together.

The tests that run them are in `tests.trainer.model` and `tests.trainer.checkpoint`.
"""
