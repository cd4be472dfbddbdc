"""C and C++ as text: the lexer, comments, and loops compiled to machine code.

Languages are declared in `pipeline.core.languages`, filters are in `pipeline.normalize`, trees in `pipeline.enrich.syntax`.
"""
