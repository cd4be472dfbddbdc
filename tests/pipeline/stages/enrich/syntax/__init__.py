"""Tests of trees: the grammar of a text, its parse, and its leaves.

Chunks that follow trees are in `tests.pipeline.stages.enrich.chunking`.
"""
