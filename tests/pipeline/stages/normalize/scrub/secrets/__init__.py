"""Tests of detectors that find a secret by itself, and of how they differ from another tool.

Tokens of vendors are in `test_vendor_tokens.py` of `tests.pipeline.stages.normalize.scrub`.
"""
