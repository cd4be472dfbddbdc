"""Tests of signs: what a name, a value or a place says of a credential.

Detectors that follow them are in `tests.pipeline.stages.normalize.scrub.credentials`.
"""
