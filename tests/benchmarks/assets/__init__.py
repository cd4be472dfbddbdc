"""Figures of the shell: how long it takes to load, what the UI costs after many nights, and fields that nothing reaches.

Runs of a team beside its database are in `tests.benchmarks.cluster`.
"""
