"""Tests of collected sources that were stored, and of their listings, with forged values in each.

Tests of promotion as a whole are in `test_promotion.py` of `tests.pipeline.build`.
"""
