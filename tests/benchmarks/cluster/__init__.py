"""Slopes of builds as they grow, the plan of a cluster that follows from them, and runs of a team beside its database.

Requests to a bucket are in `tests.benchmarks.store`, rows that are read from one in `tests.benchmarks.trainer`.
"""
