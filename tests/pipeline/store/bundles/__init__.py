"""Tests of bundles: the same bytes from every store, and what an import takes.

Imports that are killed at every call are in `tests.faults`.
"""
