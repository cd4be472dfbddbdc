"""Mutations of what judges: measures that read the first of something alone, and audits with a check left out.

Mutations of what is judged are in `tests.mutations.inputs` and `tests.mutations.offenses`.
"""
