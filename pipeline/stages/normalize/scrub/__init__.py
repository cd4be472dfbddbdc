"""Scrubbing: secrets, private keys, addresses and home folders found in a text and replaced by placeholders.

License headers are judged in `pipeline.stages.normalize.license`; whole files are dropped by `pipeline.stages.normalize.filters`.
"""
