"""Mutations of what a build is given: pinned trees, parameters, and the faults that once stayed green.

Mutations of the code that judges are in `tests.mutations.judges`, those that each gate must see in `tests.mutations.offenses`.
"""
