"""Tests of erasure: bytes that are gone from whatever the store received, and receipts of what is left.

Withdrawals, after which a build no longer contains a file, are in `tests.pipeline.build`.
"""
