"""Packed rows: which pieces share a row, the tables they become, and the checks of the stage's gates.

Columns of one document are in `pipeline.tokenize.columns`; the proofs of a snapshot are in `pipeline.verify`.
"""
