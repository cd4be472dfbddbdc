"""Tests of the foundations, on values and files of the test alone.

Fields, layers and files of recipes are in `tests.pipeline.core.settings`.
"""
