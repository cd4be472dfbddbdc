"""Network transfers: the package index that pip is configured with, and resumable downloads.

What the bytes hold is read in `pipeline.stages.collect.archives`; git has its own transport in `pipeline.stages.collect.kinds.git`.
"""
