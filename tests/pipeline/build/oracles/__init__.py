"""Tests of oracles over rows in memory: each wrong value is counted once, and sound rows are believed.

Audits of a whole built store, with these oracles, are in `test_audit.py` of `tests.pipeline.build`.
"""
