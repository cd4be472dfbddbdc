"""Tests of addresses: where each begins and ends, and what only looks like one.

Labeled lines with secrets are in `tests.support.labeled`.
"""
