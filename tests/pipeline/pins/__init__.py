"""Tests of pins, decisions, declared corpora and rules of what is held out: what is read, and what is refused.

How the sources that pins name are fetched and read is in `tests.pipeline.stages.collect`.
"""
