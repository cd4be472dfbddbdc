"""Mutations of what a build is given: pinned trees, parameters, and the faults that once stayed green."""
