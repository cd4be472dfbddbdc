"""Tests of the compiler index, which are skipped without the packages of the extra `compiler`.

A whole source of what is bad for a compiler is in `tests.faults`.
"""
