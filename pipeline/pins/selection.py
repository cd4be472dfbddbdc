"""Which files of a source are wanted, by a pin's globs."""

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import PurePosixPath

from pipeline.core.globs import any_of

_LICENSE_STEMS = frozenset({"license", "licence", "copying", "unlicense", "notice"})
_METADATA_NAMES = frozenset({"PKG-INFO", "REUSE.toml"})


class Selection:
    """A pin's `include` and `exclude`.

    `include` never removes license evidence: a source narrowed to `src/**` keeps the license text at its top. `exclude`
    removes what it names, evidence too.
    """

    def __init__(self, include: Iterable[str] = (), exclude: Iterable[str] = ()) -> None:
        self.include = tuple(include)
        self.exclude = tuple(exclude)

    def accepts(self, path: str) -> bool:
        """Whether the file at `path`, relative to the source's root, is wanted."""
        if self.exclude and self._exclude_pattern.fullmatch(path):
            return False
        return not self.include or bool(self._include_pattern.fullmatch(path)) or is_license_evidence(path)

    @cached_property
    def _include_pattern(self) -> re.Pattern[str]:
        return any_of(self.include)

    @cached_property
    def _exclude_pattern(self) -> re.Pattern[str]:
        return any_of(self.exclude)


def is_license_evidence(path: str) -> bool:
    """Return whether a file is evidence about licenses: a license text, a `.license` sidecar, REUSE or package metadata."""
    pure = PurePosixPath(path)
    if pure.name in _METADATA_NAMES or path.endswith(".reuse/dep5") or pure.suffix == ".license":
        return True
    if pure.parent.name == "LICENSES":
        return True
    stem = pure.name.lower().split(".")[0].split("-")[0].split("_")[0]
    return stem in _LICENSE_STEMS and pure.suffix.lower() in {"", ".txt", ".md", ".rst"}
