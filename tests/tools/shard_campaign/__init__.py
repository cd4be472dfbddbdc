"""Campaign against a large source: `make campaign` runs it, with a fault in each kind of part.

A small one with fewer faults is `test_shard_faults.py` in `tests.faults`.
"""
