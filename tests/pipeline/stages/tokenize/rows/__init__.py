"""Tests of packing: every token once, and cuts where they may be.

The rule that packed rows are judged by is in `tests.pipeline.stages.verify`.
"""
