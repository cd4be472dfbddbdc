"""Tests of rows that are fetched while a training reads them.

The bucket's own cache is in `tests.pipeline.storage`.
"""
