"""Tests of the data pipeline, each in the folder of what it tests; fixtures of several folders are in the conftest here.

Stores that the whole project shares are in `tests.conftest`, campaigns of faults in `tests.faults`.
"""
