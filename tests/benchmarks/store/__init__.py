"""Faults of a store, by the hundred: garbage collection beside other work, and damage of logs, refs, verdicts and keys.

A few tries of each run in `make test`, in `tests.faults`.
"""
