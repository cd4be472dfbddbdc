"""Tests of the loader: order, batches, infilling and mixtures, from any position and by any division.

Rows that are fetched from a bucket are in `tests.trainer.data.streaming`; the loader checks as a command are in
`tests.trainer.proof`.
"""
