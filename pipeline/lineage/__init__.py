"""Questions about a store: why a file is where it is, what became of all of them, and what differs between snapshots.

Everything here only reads; formats for other tools are in `pipeline.export.export`.
"""
