"""Tests of what a team shares: its database, on a server of PostgreSQL where its programs are.

That server, and the services beside it, are in `tests.deploy`.
"""
