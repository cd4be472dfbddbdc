"""Tests of evaluation items, and of the documents that hold their solutions.

A drop for an item that is not held is seen by an oracle, in `tests.pipeline.build.oracles.drops`.
"""
