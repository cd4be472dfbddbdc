"""Tests of detectors that read what stands beside a value.

Signs by themselves are in `tests.pipeline.stages.normalize.scrub.credential_signs`.
"""
