"""Queries of a store: the trace of one file, the report on all files, and the difference of two snapshots.

Nothing here writes to the store; formats for other tools are in `pipeline.export.export`.
"""
