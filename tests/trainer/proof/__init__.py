"""Tests of proofs: each acceptance gate and check passes on a sound trainer and can be red.

Mutations of a training, which these proofs must see, are in `tests.mutations`.
"""
