"""Tests of the oracles of snapshots: order, split, and each field of the manifest.

Promotions that ask them are in `test_replay.py` of `tests.pipeline.build`.
"""
