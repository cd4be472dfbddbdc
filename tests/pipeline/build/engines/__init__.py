"""Tests of one contract for every engine, and of what a worker or a cluster may do wrong.

Workers that are killed within a large source are in `tests.faults`.
"""
