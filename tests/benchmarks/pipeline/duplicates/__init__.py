"""Figures of copies: signatures beside other tools', pairs that are found beside those that there are, and a million documents.

Candidates and losers of one large corpus in parts are in `tests.benchmarks.pipeline.large_sources`.
"""
