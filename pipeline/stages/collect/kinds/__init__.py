"""Kinds of source, one file each: the model of its pin, and how a source of that kind is fetched, read and proposed.

To add a kind, write its file and list it in `source_kinds.py`. Transfers, archives and git have folders of their own.
"""
