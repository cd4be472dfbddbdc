"""Fixtures of the folders whose code is hurt here."""

from tests.pipeline.collect.conftest import delays, index, patience, surroundings, tar_gz
from tests.pipeline.conftest import sandbox

__all__ = ["delays", "index", "patience", "sandbox", "surroundings", "tar_gz"]
