"""Tests of the kinds of sources, a file each, and of a kind that a test registers.

Reading of git's objects is in `tests.pipeline.stages.collect.repositories`.
"""
