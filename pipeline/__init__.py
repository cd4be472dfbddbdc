"""The data pipeline: pure stages from pinned bytes to a snapshot, the store that they are kept in, and the command line.

No dagster, which is in `assets`; no torch, and nothing of a training, which is in `trainer`.
"""
