"""Packed rows: the pieces that share a row, and the tables of rows.

Columns of one document are in `pipeline.tokenize.columns`; the proofs about rows are in `pipeline.verify`.
"""
