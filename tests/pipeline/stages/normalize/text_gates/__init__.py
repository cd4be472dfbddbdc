"""Tests of searches of finished texts, by examples of their own.

The rules that these gates judge are in `tests.pipeline.stages.normalize.scrub`, `license` and `encodings`.
"""
