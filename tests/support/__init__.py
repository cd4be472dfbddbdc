"""Test support: plain oracles, additions to registries and places that several tests share; in `made/` inputs.

Fixtures are in the conftest of the folder that uses them; programs are in `tests.tools`.
"""
