"""Addresses of people and machines: e-mail addresses, network addresses, home folders, and what only looks like one.

Secrets are in `pipeline.stages.normalize.scrub.credentials`, and `detectors.py` above lists them all.
"""
