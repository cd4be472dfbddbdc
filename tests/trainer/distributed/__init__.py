"""Tests of ranks: one tree of sums, shards, and torchrun on one host and on two.

Ranks that a test forks are in `tests.tools.sharding`; models spread over ranks are in `tests.trainer.model`.
"""
