"""Tests of blocks, each against its formula or a loop over tokens.

Laws that hold for every block are in `test_hybrid.py` of `tests.trainer.model`.
"""
