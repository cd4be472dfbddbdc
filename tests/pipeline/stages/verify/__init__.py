"""Tests of proofs: each counts every damage that is planted in sound tables, and the snapshot's composition.

Offenses that every build plants are in `tests.pipeline.build.canaries`.
"""
