"""Registry: an ordered list of declarations by name, which a program can add to without editing the package."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from pipeline.core.errors import ParamsError, did_you_mean


class Named(Protocol):
    """A declaration that can be registered."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
"""Form of a name: it becomes a part of paths, of options and of lists that divide by blanks."""
_IN_PARTS: list["Registry[Any]"] = []
_IN_RUNS: list["Registry[Any]"] = []


class Registry(Generic[T]):
    """Declarations of one kind, such as stages or detectors, in the order in which they were registered."""

    def __init__(
        self,
        kind: str,
        *entries: T,
        is_of_words: bool = False,
        is_in_parts: bool = False,
        is_in_runs: bool = False,
        conflict: Callable[[T, T], str] = lambda entry, other: "",
    ) -> None:
        """Declare the entries of the package.

        `is_of_words` says that a name may be several, with a blank between two; `is_in_parts` that part functions run them, as
        they do detectors; `is_in_runs`, that a training does. `conflict` returns what an entry has that belongs to another one,
        or the empty string.
        """
        self.kind = kind
        self._conflict, self._is_of_words = conflict, is_of_words
        self._entries: dict[str, T] = {}
        for entry in entries:
            self.register(entry)
        self._package = frozenset(self._entries)
        if is_in_parts:
            _IN_PARTS.append(self)
        if is_in_runs:
            _IN_RUNS.append(self)

    def register(self, entry: T, before: str | None = None) -> None:
        """Add a declaration at the end, or before the one named `before`. Raises ParamsError for a name that is taken or none."""
        words = entry.name.split(" ") if self._is_of_words else [entry.name]
        if not all(map(_NAME.fullmatch, words)):
            expected = "a letter or a digit, then letters, digits and any of _ . + -"
            raise ParamsError(f"{self.kind} {entry.name!r}", "it cannot be named so", expected, "Choose another name.")
        if entry.name in self._entries:
            raise ParamsError(f"{self.kind} {entry.name}", "it is registered already", "", "Choose another name.")
        for other in self:
            taken = self._conflict(entry, other)
            if taken:
                found = f"{taken} belongs to {self.kind} {other.name}"
                raise ParamsError(f"{self.kind} {entry.name}", found, "", "Choose another, or remove it there.")
        entries = list(self)
        entries.insert(len(entries) if before is None else entries.index(self[before]), entry)
        self._entries = {each.name: each for each in entries}

    @contextmanager
    def registered(self, entry: T, before: str | None = None) -> Iterator[T]:
        """Register a declaration for the duration of a `with` block."""
        self.register(entry, before)
        try:
            yield entry
        finally:
            del self._entries[entry.name]

    def __getitem__(self, name: str) -> T:
        """Return the declaration of that name. Raises ParamsError naming those that exist."""
        if name not in self._entries:
            expected, remedy = f"one of {', '.join(self.names)}", did_you_mean(name, self.names, "Name one of these.")
            raise ParamsError(f"{self.kind} {name}", "it is not registered", expected, remedy)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of registration."""
        return tuple(self._entries)

    @property
    def added(self) -> tuple[str, ...]:
        """The names that a program has registered beside those of the package."""
        return tuple(name for name in self._entries if name not in self._package)


def added_entries() -> list[str]:
    """List what a program has registered beside the package and parts run, as `kind name`, its version and its identity, sorted.

    Worker processes do not know these entries, and no version covers what they do: where there are any, builds run parts in their
    own process, and identities hold the list. A program that changes what its entry does raises the entry's `version`; numbers that
    an entry holds are in its `identity`, where it has such a property.
    """
    return _added_to(_IN_PARTS)


def entries_added_to_runs() -> list[str]:
    """List likewise what a training runs. The identity of a run holds the list."""
    return _added_to(_IN_RUNS)


def _added_to(registries: list[Registry[Any]]) -> list[str]:
    added = [(registry.kind, registry[name]) for registry in registries for name in registry.added]
    return sorted(" ".join(filter(None, (kind, entry.name, *_identity(entry)))) for kind, entry in added)


def _identity(entry: Any) -> tuple[str, str]:
    version = getattr(entry, "version", 1)
    return "" if version == 1 else str(version), getattr(entry, "identity", "")
