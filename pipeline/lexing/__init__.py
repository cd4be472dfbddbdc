"""Texts as tokens and comments: the interface of all lexers, the lexer of C and C++, and loops compiled to machine code.

Languages are declared in `pipeline.core.languages`, filters are in `pipeline.stages.normalize`, trees in `pipeline.stages.enrich`.
"""
