"""Tests of exports of the built corpus, read by other readers than the code that wrote them.

The projects that read them run in `make consumers`, which `tests.tools.other_environments` declares.
"""
