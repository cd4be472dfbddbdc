"""Tests of compilation: budgets, the cache of compiled code, and layers that are run again.

Kernels compiled ahead for a GPU are in `tests.tools`.
"""
