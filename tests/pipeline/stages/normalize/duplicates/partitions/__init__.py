"""Tests of duplicates found in ranges and groups: the same rows as at once.

Which copies there are is tested in `tests.pipeline.stages.normalize.duplicates`; figures are in `tests.benchmarks.pipeline`.
"""
