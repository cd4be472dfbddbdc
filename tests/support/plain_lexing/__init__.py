"""C and C++ read in plain Python: what the compiled lexers are compared with.

The lexers are in `pipeline.lexing`; texts that pump expressions are in `tests.support.pumping`.
"""
