"""C and C++ as text: which file is which language, the lexer, comments, and loops compiled to machine code.

No judgment about a file belongs here: filters are in `pipeline.normalize`, syntax trees in `pipeline.enrich.syntax.parse`.
"""
