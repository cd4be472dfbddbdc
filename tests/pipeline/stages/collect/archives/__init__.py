"""Tests of archives as streams of members: what is read, skipped or refused.

Hostile archives on the way from the pin to the error are in `tests.faults`.
"""
