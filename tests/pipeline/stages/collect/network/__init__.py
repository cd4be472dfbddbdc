"""Tests of downloads and package indexes against a server of the test.

That server is a fixture of `tests.pipeline.stages.collect`.
"""
