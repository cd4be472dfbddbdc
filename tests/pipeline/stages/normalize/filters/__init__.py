"""Tests of filters, on files that must go and on good files that resemble them.

The oracle of their drops is in `tests.pipeline.build.oracles.drops`.
"""
