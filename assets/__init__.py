"""Dagster assets, jobs and resources of the pipeline and the training: the only importer of dagster.

What an asset does is in `pipeline` and `trainer`; nothing is decided here.
"""
