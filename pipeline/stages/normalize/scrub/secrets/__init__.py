"""Secrets that one file finds by itself, whatever stands beside them: private keys, and those of another tool's plugins.

What names and calls say is a password is in `pipeline.stages.normalize.scrub.credentials`, and `detectors.py` above lists them all.
"""
