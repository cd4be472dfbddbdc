"""Tests of builds: recipes, contexts, audits over a built store, evidence at a promotion, withdrawals.

Each oracle by itself is in `tests.pipeline.build.oracles`; the commands that build are in `tests.pipeline.cli`.
"""
