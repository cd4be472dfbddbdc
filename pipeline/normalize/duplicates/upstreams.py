"""Upstreams: the originals of vendored files, as pins name them."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from pathlib import PurePosixPath
from typing import Protocol

from pipeline.core.globs import any_of


class UpstreamClaim(IntEnum):
    """Claim of the pins about a file, the preferred first."""

    NAMED_UPSTREAM = 0
    UNCLAIMED = 1
    COPY = 2


class Located(Protocol):
    """A file of a source."""

    @property
    def source(self) -> str: ...

    @property
    def path(self) -> str: ...


class Upstreams:
    """The claims about each file of a corpus. `named` is source -> glob of its own paths -> the source they were taken from.

    A file that its pin calls a copy is one. A file of the named source with the same file name is its upstream, and is
    preferred even if it is below a vendored root itself.
    """

    def __init__(self, named: Mapping[str, Mapping[str, str]], files: Iterable[Located]) -> None:
        self._globs = {
            source: [(any_of([glob]), upstream) for glob, upstream in named[source].items()] for source in named
        }
        self._wanted = {(upstream, _name(file)) for file in files if (upstream := self._upstream_of(file)) is not None}
        self._upstreams = {upstream for upstream, _ in self._wanted}

    def claim(self, file: Located) -> UpstreamClaim:
        """Return the claim about a file of the corpus."""
        if self._upstream_of(file) is not None:
            return UpstreamClaim.COPY
        is_named = file.source in self._upstreams and (file.source, _name(file)) in self._wanted
        return UpstreamClaim.NAMED_UPSTREAM if is_named else UpstreamClaim.UNCLAIMED

    def _upstream_of(self, file: Located) -> str | None:
        globs = self._globs.get(file.source, ())
        return next((upstream for pattern, upstream in globs if pattern.fullmatch(file.path)), None)


def _name(file: Located) -> str:
    return PurePosixPath(file.path).name
