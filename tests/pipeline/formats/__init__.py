"""Tests of the bytes of file formats: round trips, determinism, and damage.

Exports in these formats are in `tests.pipeline.export`.
"""
