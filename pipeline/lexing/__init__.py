"""Texts as tokens and comments: the interface of all lexers, rules of C and C++ files, loops as machine code.

Languages are declared in `pipeline.core.languages`, filters are in `pipeline.stages.normalize`, trees in `pipeline.stages.enrich`.
"""
