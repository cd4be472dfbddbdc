"""Tests of enrich: its table, its counts, and the order of its documents.

Trees, chunks and the compiler index have folders here; wrong structure is found in `tests.pipeline.build.oracles`.
"""
