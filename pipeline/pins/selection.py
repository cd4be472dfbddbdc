"""Selections of files: Selection, the globs of a pin; Selector, the argument of a withdrawal; and Selectors, several of them."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from pipeline.core.change_text import changed_file
from pipeline.core.errors import ParamsError
from pipeline.core.globs import Globs

_LICENSE_STEMS = frozenset({"license", "licence", "copying", "unlicense", "notice", "eula"})
_TEXT_SUFFIXES = frozenset({"", ".txt", ".md", ".rst", ".commercial", ".enterprise", ".proprietary", ".eula"})
_README_SUFFIXES = frozenset({"", ".txt", ".md", ".rst"})
_METADATA_NAMES = frozenset({"PKG-INFO", "REUSE.toml"})
_SELECTOR = re.compile(r"sha256:[0-9a-f]{64}|[a-z0-9]+(-[a-z0-9]+)*(/[^/\x00]+)*")


class Selection:
    """A pin's `include` and `exclude`.

    `include` never removes license evidence: a source narrowed to `src/**` keeps the license text at its top. `exclude`
    removes every match, evidence too.
    """

    def __init__(self, include: Iterable[str] = (), exclude: Iterable[str] = ()) -> None:
        self.include = tuple(include)
        self.exclude = tuple(exclude)

    def accepts(self, path: str) -> bool:
        """Return whether the file at `path`, relative to the source's root, is selected."""
        if self.exclude and self._excluded.match_any(path):
            return False
        return not self.include or self._included.match_any(path) or is_license_evidence(path)

    @cached_property
    def _included(self) -> Globs:
        return Globs(self.include)

    @cached_property
    def _excluded(self) -> Globs:
        return Globs(self.exclude)


def is_license_evidence(path: str) -> bool:
    """Return whether a file is evidence about licenses: a text, a `.license` sidecar, a README, REUSE or package metadata."""
    pure = PurePosixPath(path)
    if is_readme(path):
        return True
    if pure.name in _METADATA_NAMES or path.endswith(".reuse/dep5") or pure.suffix == ".license":
        return True
    if pure.parent.name == "LICENSES":
        return True
    stem = pure.name.lower().split(".")[0].split("-")[0].split("_")[0]
    return stem in _LICENSE_STEMS and pure.suffix.lower() in _TEXT_SUFFIXES


def is_readme(path: str) -> bool:
    """Return whether a file is a README, which may have a section about the license."""
    pure = PurePosixPath(path)
    return pure.stem.lower() == "readme" and pure.suffix.lower() in _README_SUFFIXES


@dataclass(frozen=True)
class Selector:
    """Selector of withdrawals: a source (`zlib`), files of a source by a glob as in a pin (`zlib/contrib/**`), or the bytes of a
    file in any source (`sha256:` and the digest of the file as received). Raises ParamsError for any other text.
    """

    text: str

    def __post_init__(self) -> None:
        if not _SELECTOR.fullmatch(self.text):
            expected = "SOURCE, SOURCE/GLOB, or sha256: and 64 hex digits"
            remedy = "`zlib`, `zlib/contrib/**` and `sha256:9f86...` are selectors."
            raise ParamsError(f"selector {self.text[:200]!r}", "cannot be parsed", expected, remedy)

    @property
    def sha256(self) -> str | None:
        """The digest of the withdrawn bytes, or None for a selector by name."""
        return self.text.removeprefix("sha256:") if self.text.startswith("sha256:") else None

    @property
    def source(self) -> str | None:
        """The source that it names, or None for a digest, which may be in any source."""
        return None if self.sha256 else self.text.partition("/")[0]

    @property
    def is_whole_source(self) -> bool:
        """True where it withdraws a source completely."""
        return self.source == self.text

    def concerns(self, source: str) -> bool:
        """Return whether it may match a file of that source."""
        return self.source in (None, source)

    def matches(self, path: str, sha256: str) -> bool:
        """Return whether it matches the file of its source at `path`, whose bytes have that digest."""
        return self.matches_path(path) if self.sha256 is None else self.sha256 == sha256

    def matches_path(self, path: str) -> bool:
        """Return whether it matches the file at `path` of its source by name, or the file that a document of change is about."""
        return self.sha256 is None and not all(map(self._selection.accepts, {path, changed_file(path)}))

    @cached_property
    def _selection(self) -> Selection:
        return Selection(exclude=(self.text.partition("/")[2] or "**",))


class Selectors:
    """Selectors that are asked together: those by digest are looked up, so that thousands of them cost what one does."""

    def __init__(self, selectors: Iterable[Selector]) -> None:
        self.all = tuple(sorted(selectors, key=lambda selector: selector.text))
        self._by_name = [selector for selector in self.all if selector.sha256 is None]
        self._by_digest = {selector.sha256: selector for selector in self.all if selector.sha256 is not None}

    @property
    def has_digests(self) -> bool:
        """True where one of them names bytes, which may be in any source."""
        return bool(self._by_digest)

    def concern(self, source: str) -> bool:
        """Return whether one of them may match a file of that source."""
        return self.has_digests or any(selector.source == source for selector in self._by_name)

    def named(self, texts: Collection[str]) -> frozenset[Selector]:
        """Return those with one of these texts."""
        return frozenset(selector for selector in self.all if selector.text in texts)

    def matching(self, source: str, path: str, *sha256s: str | None) -> list[Selector]:
        """Return the selectors that match a file, sorted; its bytes may be unknown, or those of several versions of it."""
        found = {each for each in self._by_name if each.source == source and each.matches_path(path)}
        found.update(self._by_digest[sha256] for sha256 in sha256s if sha256 in self._by_digest)
        return sorted(found, key=lambda selector: selector.text)


def gathered(pairs: Iterable[tuple[str, Collection[Selector]]]) -> dict[str, frozenset[Selector]]:
    """Return each digest with the selectors of all its pairs, in the order in which the digests come."""
    found: dict[str, frozenset[Selector]] = {}
    for digest, matching in pairs:
        found[digest] = found.get(digest, frozenset()).union(matching)
    return found
