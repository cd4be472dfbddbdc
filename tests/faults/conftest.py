"""Fixtures of the folders whose code is tested with faults here."""

from tests.pipeline.collect.conftest import delays, index, retry, surroundings, tar_gz
from tests.pipeline.conftest import sandbox

__all__ = ["delays", "index", "retry", "sandbox", "surroundings", "tar_gz"]
