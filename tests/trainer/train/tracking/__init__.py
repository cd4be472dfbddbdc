"""Tests of trackers, with the libraries that are installed or stand-ins for them.

The projects themselves run in `make consumers`, which `tests.tools.other_environments` declares.
"""
