"""Transfers: the package index that pip is configured with, resumable downloads, retries.

What the bytes hold is read in `pipeline.collect.archives`; git has its own transport in `pipeline.collect.git`.
"""
