"""Tests of columns beside tokens: alignment and lists.

The proof that counts wrong columns is in `tests.pipeline.stages.verify`.
"""
