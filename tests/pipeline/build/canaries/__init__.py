"""Tests of canaries: all are caught, and a rule or proof that no longer judges shows by one of them.

Mutations, which plant faults in the code that judges, are in `tests.mutations`.
"""
