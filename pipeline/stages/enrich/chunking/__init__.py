"""Chunks: byte ranges along a text's structure that together are the text, and their sizes.

The trees they follow come from `pipeline.stages.enrich.syntax`; tokens are cut in `pipeline.stages.tokenize`.
"""
