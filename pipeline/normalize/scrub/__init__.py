"""Scrubbing: secrets, private keys, addresses and home folders found in a text and replaced by placeholders.

License headers are judged in `pipeline.normalize.license`; whole files are dropped by `pipeline.normalize.filters`.
"""
