"""A part that lists no shards: what stages ask of an object beside its tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar


class WholePart:
    """The part of a source in one part."""

    is_joined = False
    inputs: ClassVar[Mapping[str, str]] = {}

    @property
    def shards(self) -> Sequence[Any]:
        """Return itself."""
        return (self,)

    def paths(self, name: str) -> Sequence[Path]:
        """Return no files: its tables are in memory."""
        return ()
