"""The stage normalize: source files in, clean and licensed documents out, without their duplicates.

Reading archives is `pipeline.collect`; the lexer is in `pipeline.cpp`; syntax trees are in `pipeline.enrich`.
"""
