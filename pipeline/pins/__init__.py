"""Pins: entries of a TOML file that name immutable bytes, the files that they select, people's decisions about files, the catalog.

The kinds of pin, with their fetching and reading, are in `pipeline.stages.collect.kinds`; recipes are in `pipeline.build`.
"""
