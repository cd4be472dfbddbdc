"""Tests of chunks: on written, drawn and mutated texts no byte is lost.

Chunks in the stage's table are in `tests.pipeline.stages.enrich`.
"""
