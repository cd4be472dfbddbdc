"""Tests of sampling, scores and the exported modeling file.

Commands that call them are in `tests.trainer.cli`.
"""
