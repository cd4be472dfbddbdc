"""Syntax trees: the grammar of a text, its parse, unbalanced branches, and the leaves as columns.

Chunks made from trees are in `pipeline.stages.enrich.chunking`; the compiler index is `pipeline.stages.enrich.compiler`.
"""
