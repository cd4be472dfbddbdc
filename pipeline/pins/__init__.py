"""Pins: entries of a TOML file that name immutable bytes, what they select of them, and what is withdrawn.

Fetching and reading the bytes is `pipeline.collect`; which pins a recipe builds is `pipeline.build.build.recipes`.
"""
