"""Tests of configurations: which can be built, and what presets and recipes hold.

The model that a configuration builds is in `tests.trainer.model`.
"""
