"""Tests of settings: fields by name, layers with their precedence, and recipes as files.

The forms of the UI, which show the same fields, are in `tests.assets`.
"""
