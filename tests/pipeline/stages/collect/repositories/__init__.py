"""Tests of git: the isolated command, objects of packs, and histories that the tests make.

The program that makes repositories is in `tests.support`; the listed history as an oracle is in `tests.pipeline.build.oracles`.
"""
