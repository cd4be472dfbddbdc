"""Texts as tokens and comments: the interface of all lexers, the lexer of C and C++, and loops compiled to machine code.

Languages are declared in `pipeline.core.languages`, filters are in `pipeline.normalize`, trees in `pipeline.enrich.syntax`.
"""
