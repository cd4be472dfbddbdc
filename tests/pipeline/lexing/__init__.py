"""Tests of languages and lexers, against regular expressions and plain integers; languages that a test registers.

The plain lexer, an oracle that other folders use too, is in `tests.support`.
"""
