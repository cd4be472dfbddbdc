"""Campaign against a large source: `make campaign` runs it, `tests/faults/test_shard_faults.py` a small one with fewer faults."""
