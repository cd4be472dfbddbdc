"""Tests of questions about a store, with the made corpus as it was built and with builds that differ.

Origins of tokens are in `tests.pipeline.lineage.origins`; the commands that ask are in `tests.pipeline.cli`.
"""
