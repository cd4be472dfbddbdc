"""Tests of prose in comments: names and notices of licenses, and clauses that limit a work.

Decisions that follow from it are in `tests.pipeline.stages.normalize.license`.
"""
