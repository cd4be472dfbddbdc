"""Packed rows: the pieces that share a row, and the tables of rows.

Columns of one document are in `pipeline.stages.tokenize.columns`; the proofs about rows are in `pipeline.stages.verify`.
"""
