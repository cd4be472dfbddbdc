"""Tests of the oracles of copies: columns that were copied, and documents that are called copies.

How copies are found is tested in `tests.pipeline.stages.normalize.duplicates`.
"""
