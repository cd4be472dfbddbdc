"""PinUpdate: the newest release, commit or digest of a pin's source, and what its files would change, for a person to review."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pipeline.core.errors import SluiceError, SourceError
from pipeline.pins.pins import SourcePin
from pipeline.pins.selection import is_license_evidence
from pipeline.stages.collect.kinds.source_kind import Fetcher
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.propose_pin import read_pinned

Digests = Mapping[str, str]
"""Path of a file -> SHA-256 of its bytes."""


@dataclass(frozen=True)
class PinUpdate:
    """Update of a pin: each field that changes, with its value before and after; and the files that come, go and change."""

    name: str
    kind: str
    fields: Mapping[str, tuple[str, str]]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    num_equal: int = 0
    notes: tuple[str, ...] = ()
    failure: str = ""
    """The error of this pin; the others are answered."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The update for a person: what to write into the entry, and what that changes."""
        if self.failure:
            return (self.failure,)
        if not self.fields:
            return (f"{self.name}: {'; '.join(self.notes) or 'nothing newer'}",)
        written = (f'{self.name}: {field} = "{new}" in place of "{old}"' for field, (old, new) in self.fields.items())
        sizes = {
            "new": len(self.added),
            "gone": len(self.removed),
            "changed": len(self.changed),
            "equal": self.num_equal,
        }
        counts = f"files: {', '.join(f'{number} {what}' for what, number in sizes.items())}"
        return (
            *written,
            *(f"{self.name}: {each}" for each in ((counts, *self.notes) if self._is_compared else self.notes)),
        )

    def shown(self, message: Callable[[str], str], path: Callable[[str], str]) -> "PinUpdate":
        """Return the update as it may be shown, its words by `message` and its paths by `path`: an error quotes addresses."""
        added, removed, changed = (tuple(map(path, each)) for each in (self.added, self.removed, self.changed))
        fields = {field: (message(old), message(new)) for field, (old, new) in self.fields.items()}
        cleaned = replace(self, fields=fields, notes=tuple(map(message, self.notes)), failure=message(self.failure))
        return replace(cleaned, added=added, removed=removed, changed=changed)

    @property
    def _is_compared(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.num_equal)


def propose_updates(
    pins: Iterable[SourcePin], fetcher: Fetcher, known: Callable[[SourcePin], Digests | None]
) -> Iterator[PinUpdate]:
    """Find something newer of each pin, in order. `known` returns the files of a pin's source if it was collected before."""
    for pin in pins:
        try:
            yield _update(pin, fetcher, known)
        except SluiceError as error:
            is_named = error.subject.partition(":")[0] == pin.name
            yield PinUpdate(pin.name, pin.kind, {}, failure=str(error) if is_named else f"{pin.name}: {error}")


def _update(pin: SourcePin, fetcher: Fetcher, known: Callable[[SourcePin], Digests | None]) -> PinUpdate:
    kind = SOURCE_KINDS[pin.kind]
    if kind.newest is None:
        return PinUpdate(pin.name, pin.kind, {}, notes=(f"of a pin of kind {pin.kind} nothing newer is known",))
    found = kind.newest_of(pin, fetcher)
    if not found:
        return PinUpdate(pin.name, pin.kind, {})
    newer = type(pin).model_validate({**pin.model_dump(), **found})
    fields = {field: (str(getattr(pin, field)), value) for field, value in found.items()}
    before, after = known(pin) or _digests_or_none(pin, fetcher), _digests(newer, fetcher)
    if before is None:
        note = f"{len(after)} files; what is pinned now is not at hand, so that they were not compared"
        return PinUpdate(pin.name, pin.kind, fields, notes=(note,))
    both = sorted(before.keys() & after.keys())
    changed = tuple(path for path in both if before[path] != after[path])
    added, removed = (tuple(sorted(one.keys() - other.keys())) for one, other in ((after, before), (before, after)))
    licenses = [path for path in (*added, *removed, *changed) if is_license_evidence(path)]
    notes = (f"license evidence is among them: {', '.join(licenses[:5])}",) if licenses else ()
    return PinUpdate(pin.name, pin.kind, fields, added, removed, changed, len(both) - len(changed), notes)


def _digests_or_none(pin: SourcePin, fetcher: Fetcher) -> Digests | None:
    try:
        return _digests(pin, fetcher)
    except SourceError:  # such as a folder that has other bytes by now
        return None


def _digests(pin: SourcePin, fetcher: Fetcher) -> Digests:
    """Read the files of a pin, fetching what is missing; of a repository the commit alone."""
    if getattr(pin, "history", False):
        pin = pin.model_copy(update={"history": False})
    path = SOURCE_KINDS[pin.kind].path_of(pin, fetcher)
    return {file.path: hashlib.sha256(file.content).hexdigest() for file in read_pinned(pin, path).files}
