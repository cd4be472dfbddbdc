"""PinUpdate: the newest release, commit or digest of a pin's source, and what its files would change, for a person to review."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pipeline.core.errors import SluiceError, SourceError
from pipeline.pins.pins import SourcePin
from pipeline.pins.selection import is_license_evidence
from pipeline.stages.collect.contents import SourceContents
from pipeline.stages.collect.kinds.source_kind import Fetcher
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.propose_pin import ignored, read_pinned

Digests = Mapping[str, str]
"""Path of a file -> SHA-256 of its bytes."""
_NUM_SHOWN = 5


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
        files = {"new": self.added, "gone": self.removed, "changed": self.changed}
        numbers = [f"{len(paths)} {what}" for what, paths in files.items()]
        counts = f"files: {', '.join(numbers)}, {self.num_equal} equal"
        named = (f"{what}: {_some(paths)}" for what, paths in files.items() if paths)
        told = (counts, *named, *self.notes) if self._is_compared else self.notes
        return (*written, *(f"{self.name}: {each}" for each in told))

    def shown(self, message: Callable[[str], str], path: Callable[[str], str]) -> "PinUpdate":
        """Return the update as it may be shown, its words by `message` and its paths by `path`: an error quotes addresses."""
        added, removed, changed = (tuple(map(path, each)) for each in (self.added, self.removed, self.changed))
        fields = {field: (message(old), message(new)) for field, (old, new) in self.fields.items()}
        cleaned = replace(self, fields=fields, notes=tuple(map(message, self.notes)), failure=message(self.failure))
        return replace(cleaned, added=added, removed=removed, changed=changed)

    @property
    def _is_compared(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.num_equal)


def _some(paths: tuple[str, ...]) -> str:
    """Return the first paths, and how many more there are."""
    left = len(paths) - _NUM_SHOWN
    return f"{', '.join(paths[:_NUM_SHOWN])}{f' and {left} more, which `--json` lists' if left > 0 else ''}"


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
    before, contents = known(pin) or _digests_or_none(pin, fetcher), _contents(newer, fetcher)
    after, left_out = _digests(contents), tuple(ignored(contents, str))
    if before is None:
        note = f"{len(after)} files; what is pinned now is not at hand, so that they were not compared"
        return PinUpdate(pin.name, pin.kind, fields, notes=(note, *left_out))
    both = sorted(before.keys() & after.keys())
    changed = tuple(path for path in both if before[path] != after[path])
    added, removed = (tuple(sorted(one.keys() - other.keys())) for one, other in ((after, before), (before, after)))
    licenses = [path for path in (*added, *removed, *changed) if is_license_evidence(path)]
    notes = (f"license evidence is among them: {_some(tuple(licenses))}",) if licenses else ()
    return PinUpdate(pin.name, pin.kind, fields, added, removed, changed, len(both) - len(changed), (*notes, *left_out))


def _digests_or_none(pin: SourcePin, fetcher: Fetcher) -> Digests | None:
    try:
        return _digests(_contents(pin, fetcher))
    except SourceError:  # such as a folder that has other bytes by now
        return None


def _contents(pin: SourcePin, fetcher: Fetcher) -> SourceContents:
    """Read the source of a pin, fetching what is missing; of a repository the commit alone."""
    if getattr(pin, "history", False):
        pin = pin.model_copy(update={"history": False})
    return read_pinned(pin, SOURCE_KINDS[pin.kind].path_of(pin, fetcher))


def _digests(contents: SourceContents) -> Digests:
    return {file.path: hashlib.sha256(file.content).hexdigest() for file in contents.files}
