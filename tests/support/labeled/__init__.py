"""Labeled lines: secrets that must go, by kind, and look-alikes that must stay, put together when the tests run.

The tests that scrub them are in `tests.pipeline.stages.normalize.scrub`; labeled sentences of licenses are beside their test.
"""
