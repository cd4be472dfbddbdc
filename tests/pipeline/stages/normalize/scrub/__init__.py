"""Tests of scrubbing as a whole, of tokens of known shapes, and of what stays.

Each detector has its test in `addresses/`, `secrets/` or `credentials/`; labeled lines are in `tests.support.labeled`.
"""
