"""Tests of normalize: one source by all rules, decisions, bands, and the stage as a whole.

Each rule is in the folder of its name here; bad files, a row each, are in `tests.faults`.
"""
