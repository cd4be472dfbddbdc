"""Tests of the sandbox by hostile scripts and texts.

Compilers that run in it are in `tests.pipeline.stages.enrich.compiler`.
"""
