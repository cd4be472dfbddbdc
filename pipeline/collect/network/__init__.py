"""Network transfers: the package index that pip is configured with, and resumable downloads.

What the bytes hold is read in `pipeline.collect.archives`; git has its own transport in `pipeline.collect.kinds.git`.
"""
