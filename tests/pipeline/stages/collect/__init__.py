"""Tests of collect on folders, archives and servers of the test, whose index can be made to misbehave.

Bad archives and bad sources, a row each, are in `tests.faults`.
"""
