"""Tests of what holds for every stage: keys of parts, and stages that a program registers.

Each stage has a folder here, with its own test of `run`; builds of all stages are in `tests.pipeline.build`.
"""
