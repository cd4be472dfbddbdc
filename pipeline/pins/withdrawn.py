"""What a withdrawal names: a source (`zlib`), files of a source by a glob as in a pin (`zlib/contrib/**`), or the bytes of a
file wherever they lie (`sha256:` and the digest of the file as received).
"""

import re
from dataclasses import dataclass
from functools import cached_property

from pipeline.core.errors import ParamsError
from pipeline.pins.selection import Selection

_SELECTOR = re.compile(r"sha256:[0-9a-f]{64}|[a-z0-9]+(-[a-z0-9]+)*(/[^/\x00]+)*")


@dataclass(frozen=True)
class Selector:
    """What is withdrawn: a source, some of its files, or a digest. Raises ParamsError for a text that is none."""

    text: str

    def __post_init__(self) -> None:
        if not _SELECTOR.fullmatch(self.text):
            raise ParamsError(
                f"selector {self.text[:200]!r}",
                "it names nothing",
                "SOURCE, SOURCE/GLOB, or sha256: and 64 hex digits",
                "`zlib`, `zlib/contrib/**` and `sha256:9f86...` are selectors.",
            )

    @property
    def sha256(self) -> str | None:
        """The digest of the withdrawn bytes, if it is by digest."""
        return self.text.removeprefix("sha256:") if self.text.startswith("sha256:") else None

    @property
    def source(self) -> str | None:
        """The one source it speaks of, or None for a digest, which may be anywhere."""
        return None if self.sha256 else self.text.partition("/")[0]

    @property
    def is_whole_source(self) -> bool:
        """Whether nothing of its source is left."""
        return self.source == self.text

    def concerns(self, source: str) -> bool:
        """Whether it may name a file of that source."""
        return self.source in (None, source)

    def takes(self, path: str, sha256: str) -> bool:
        """Whether it names the file of its source at `path`, whose bytes have that digest."""
        return self.takes_path(path) if self.sha256 is None else self.sha256 == sha256

    @cached_property
    def _selection(self) -> Selection:
        return Selection(exclude=(self.text.partition("/")[2] or "**",))

    def takes_path(self, path: str) -> bool:
        """Whether it names the file at `path` of its source."""
        return self.sha256 is None and not self._selection.accepts(path)
