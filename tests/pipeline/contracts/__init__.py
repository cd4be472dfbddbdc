"""Tests of contracts: each gate by its own examples, reports that add up, declarations of stages and columns.

Gates over the tables of a build are tested in the folders of `tests.pipeline.stages`.
"""
