"""Test support: made inputs, plain oracles and places that several tests share.

Fixtures are in the conftest of the folder that uses them; programs are in `tests.tools`.
"""
