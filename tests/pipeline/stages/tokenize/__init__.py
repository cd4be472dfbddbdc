"""Tests of tokenize: vocabularies, encoding, and the stage on documents of odd sizes.

Columns and rows have folders here; the proofs about them are in `tests.pipeline.stages.verify`.
"""
