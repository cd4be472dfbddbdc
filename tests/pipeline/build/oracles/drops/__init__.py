"""Tests of the oracles of drops, against all that the filters, the decoder and the license rules drop.

Those rules themselves are tested in `tests.pipeline.stages.normalize`.
"""
