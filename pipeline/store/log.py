"""Append-only logs of a store: moves of refs, withdrawals, blobs.

Each line of a log holds a digest of itself and of the line before, and the head of the log, a one-line file, holds the number
and the digest of the last line: a line that is changed, removed or cut off is found. Each head also holds the ends of the other
logs, so that a log that was cut is found even beside an older head of its own. The file `ends`, outside of log/, holds the ends
of all, so that all of log/ from an older copy is found, which would let in what was withdrawn since. Readers accept what a power
cut or a kill leaves, an incomplete last line, or one line more than the heads say; the next append repairs it.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from pipeline.core.durable import cut_torn_line, make_folder, replace, sync
from pipeline.core.errors import DamagedError
from pipeline.core.params import canonical_json, digest, parse_json
from pipeline.storage.checked_text import read_value, refuse_link, text_of, write_value
from pipeline.storage.storage import Lines, LogConflictError
from pipeline.store.locks import REFS_LOCK, Locks
from pipeline.store.store_layout import has_format, is_id, mark_format, visible

PROMOTIONS = Path("log") / "promotions.jsonl"
WITHDRAWALS = Path("log") / "withdrawals.jsonl"
BLOBS = Path("log") / "blobs.jsonl"
LOGS = {PROMOTIONS: "corpus", WITHDRAWALS: "selector", BLOBS: "blob"}
"""The logs, and the field that each entry of them has."""
RECEIPT = "receipt.json"
"""The file of a receipt: an object that says what was erased with a withdrawal, and what still holds a copy."""
ReadT = TypeVar("ReadT")
End = tuple[int, str]
"""End of a log: the number of its lines, and the digest of the last one."""
ENDS = "ends"
"""The file with the ends of all logs. A head that was written beside it names it, so that a missing one is found."""
_NAMES_ENDS = {ENDS: (1, "written")}
_TAIL_SIZE = 1 << 20
_NUM_READS = 1_000
"""Times that a reader, who holds no lock, reads again because a writer wrote meanwhile."""
_BEGINNING = b'{"chain":"'
"""Bytes that each line begins with, also one that a power cut left incomplete."""
_LOG_REMEDY = (
    "Restore it from a backup, or correct its lines by hand and run `python -m pipeline fsck --accept-logs`, which takes them as "
    "they are."
)


@dataclass(frozen=True)
class Head:
    """The end of a log, and the ends of the others when this head was written: they may have grown since, and not shrunk."""

    end: End
    seen: Mapping[str, End]

    @property
    def text(self) -> str:
        """The value of the head's file."""
        return " ".join([f"{self.end[0]} {self.end[1]}", *_written(self.seen)])


class Holding(NamedTuple):
    """The snapshots that hold what is withdrawn, and those of which nothing in the store tells."""

    held_by: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()


NOBODY = Holding()
_HOLDING = ("snapshots", "unknown")
"""The fields of an entry that name them."""


class Log(Locks):
    """Logs under `root`/log, one JSON object a line."""

    root: Path
    clock: Callable[[], datetime]
    _is_changing = False

    def history(self, corpus: str) -> list[dict[str, Any]]:
        """Return every move of the refs of a corpus, oldest first. Raises DamagedError."""
        return [entry for entry in self.entries(PROMOTIONS) if entry["corpus"] == corpus]

    def moves(self, corpus: str, ref: str) -> list[dict[str, Any]]:
        """Return every move of one ref of a corpus, oldest first. Raises DamagedError."""
        return [entry for entry in self.history(corpus) if entry["ref"] == ref]

    def withdrawals(self) -> list[dict[str, Any]]:
        """Return every withdrawal, and each one taken back (`is_undone`), oldest first. Raises DamagedError."""
        return list(self.entries(WITHDRAWALS))

    def active_withdrawals(self) -> list[str]:
        """Return the selectors of withdrawals that were not taken back, sorted. Raises DamagedError."""
        texts: set[str] = set()
        for entry in self.withdrawals():
            (texts.discard if entry.get("is_undone") else texts.add)(entry["selector"])
        return sorted(texts)

    def receipts(self) -> dict[str, str]:
        """Return the receipts of erasures by id, each with the time of its newest line. Raises DamagedError."""
        return {entry["receipt"]: entry["when"] for entry in self.withdrawals() if "receipt" in entry}

    def withdrawn_snapshots(self) -> dict[str, Holding]:
        """Return the snapshots that hold what is withdrawn, or may, by selector, sorted. Raises DamagedError."""
        found: dict[str, Holding] = {}
        for entry in self.withdrawals():
            is_undone = bool(entry.get("is_undone"))
            found[entry["selector"]] = (
                NOBODY if is_undone else Holding(*(frozenset(entry.get(f, ())) for f in _HOLDING))
            )
        return dict(sorted(found.items()))

    def log_withdrawal(
        self, selector: str, reason: str, is_undone: bool = False, holding: Holding = NOBODY, receipt: str = ""
    ) -> None:
        """Record that no corpus may hold what `selector` names, and which snapshots do or may; or that they may again.

        `receipt` is the object that says what was erased with it.
        """
        held = {field: sorted(names) for field, names in zip(_HOLDING, holding, strict=True) if names}
        self.prepare()
        entry = {"selector": selector, "reason": reason, "is_undone": is_undone, **held}
        entry |= {"receipt": receipt} if receipt else {}
        self.change(lambda: self.append(WITHDRAWALS, entry))

    def entries(self, log: Path) -> Iterator[dict[str, Any]]:
        """Iterate over the entries of a log. Raises DamagedError for a line that is not as written, or is missing."""
        yield from self.read_consistently(lambda: self.lines(log)[0])

    def read_consistently(self, read: Callable[[], ReadT]) -> ReadT:
        """Return what `read` returns, without a lock: what it calls damaged while a writer writes is read again."""
        self.pull()
        for _ in range(_NUM_READS):
            before = self._stamp()
            try:
                return read()
            except DamagedError:
                if self._stamp() == before:
                    raise
            time.sleep(0.001)
        return read()

    def lines(self, log: Path) -> tuple[list[dict[str, Any]], int]:
        """Return the entries of a log, and how many of them its head names: a kill leaves one more. Raises DamagedError."""
        lines, torn = _split(self.root / log)
        if not has_format(self.root):  # what an earlier version of Sluice wrote was moved into a new store
            return [_carried(log, number, line) for number, line in enumerate(lines, start=1)], len(lines)
        (num_named, last), seen = self._head(log).end, self._seen(log)
        named = [(_head_of(log), (num_named, last)), *seen.items()]
        chain, entries = _first(log), []
        for number, line in enumerate(lines, start=1):
            entry, chain = _checked(log, number, line, chain)
            for head, end in named:
                if end[0] == number and end[1] != chain:
                    raise _damaged(f"line {number} of {log}", f"it is not the line that {head} names")
            entries.append(entry)
        if not num_named <= len(lines) <= num_named + 1:
            raise _damaged(f"{log}", f"it has {len(lines)} lines", f"{num_named}, as its head says")
        _refuse_older_head(log, num_named, seen)
        if not (torn.startswith(_BEGINNING) or _BEGINNING.startswith(torn)):
            raise _damaged(f"line {len(lines) + 1} of {log}", f"it is not an entry, but {torn[:40]!r}")
        return entries, num_named

    def append(self, log: Path, entry: dict[str, Any], apply: Callable[[], object] = lambda: None) -> None:
        """Append an entry with its time, sync it, apply it, and move the heads. The caller holds the lock of the refs.

        While the head does not name the line, what it says may not have been applied. Raises DamagedError for a log whose last line
        is not the one that its head names.
        """
        path = self.root / log
        make_folder(path.parent)
        with path.open("a+b") as file:
            number, chain = self._end(log, file)
            cut_torn_line(file)
            timed = entry | {"when": self.clock().isoformat()}
            chain = digest([chain, timed])
            line = canonical_json(timed | {"chain": chain})
            self.storage.publish(log.stem, number + 1, line)
            file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync(path.parent)
        apply()
        self._move_heads(log, (number + 1, chain))

    def change(self, make: Callable[[], None]) -> None:
        """Run `make`, which judges the logs and appends to them, under the lock of the refs, again if another was first."""
        with self.lock(REFS_LOCK):
            self._is_changing = True
            try:
                while True:
                    self.storage.pull(self._lines_here, self._take)
                    with suppress(LogConflictError):
                        return make()
            finally:
                self._is_changing = False

    def pull(self) -> None:
        """Fetch logs and refs of a storage that others write too; nothing where this folder is the store."""
        if self.storage.is_shared and not self._is_changing and has_format(self.root):
            with self.lock(REFS_LOCK):
                self.storage.pull(self._lines_here, self._take)

    def settle(self, log: Path, is_applied: bool) -> None:
        """Name the last line of a log, which a killed writer left and no head names, or cut it off if it was not applied."""
        with (self.root / log).open("r+b") as file:
            end = self._end(log, file)
            cut_torn_line(file)
            if is_applied:
                self._move_heads(log, end)
                return
            file.seek(0)
            file.truncate(file.read()[:-1].rfind(b"\n") + 1)
            os.fsync(file.fileno())

    def accept_logs(self) -> None:
        """Take the lines of the logs as they are, after somebody corrected them by hand. Raises DamagedError for other lines."""
        self.storage.refuse("fsck --accept-logs")
        with self.in_use(alone=True), self.lock(REFS_LOCK):
            self._accept()

    def prepare(self) -> None:
        """Make a new store ready to be written: check what was moved into it from an earlier one, and write its format."""
        if has_format(self.root):
            return
        self.storage.prepare()
        with self.lock(REFS_LOCK):
            if has_format(self.root):
                return
            self._accept()
            for path in visible((self.root / "names").glob("**/*")):
                if path.is_file() and is_id(found := text_of(path) or ""):
                    write_value(self.root, path.relative_to(self.root).as_posix(), found)
            mark_format(self.root)

    def take_moves(self, entries: Sequence[dict[str, Any]]) -> None:
        """Move the refs to where the history that was brought says that they are."""

    def _lines_here(self) -> dict[str, list[bytes]]:
        return {log.stem: _split(self.root / log)[0] for log in LOGS}

    def _take(self, lines: Lines) -> None:
        """Make the logs, the refs and the heads here those of the storage. Raises DamagedError for an older copy of them."""
        ends: dict[Path, End] = {}
        entries: dict[Path, list[dict[str, Any]]] = {}
        for log in LOGS:
            chain, entries[log] = _first(log), []
            number, named = self._head(log).end if (self.root / _head_of(log)).exists() else (0, chain)
            is_older = number > len(lines.get(log.stem, ()))
            for line in lines.get(log.stem, ()):
                entry, chain = _checked(log, len(entries[log]) + 1, line, chain)
                entries[log].append(entry)
                is_older = is_older or (len(entries[log]) == number and chain != named)
            if is_older:
                found = f"it is another one than this machine has seen, with {number} lines"
                raise DamagedError(f"log {log.stem} of {self.storage.address}", found, "its lines", _LOG_REMEDY)
            ends[log] = len(entries[log]), chain
            replace(self.root / log, b"".join(line + b"\n" for line in lines.get(log.stem, ())))
        self.take_moves(entries[PROMOTIONS])
        self._write_ends({log.name: end for log, end in ends.items()})
        for log, end in ends.items():
            seen = {other.name: each for other, each in ends.items() if other != log}
            self._write_head(log, Head(end, {**seen, **_NAMES_ENDS}))

    def _accept(self) -> None:
        """Write all logs with a new chain of digests, and heads that name no others until all are written."""
        (self.root / ENDS).unlink(missing_ok=True)
        ends = {log: self._chained_again(log) for log in LOGS}
        for log, end in ends.items():
            self._write_head(log, Head(end, {}))
        for log, end in ends.items():
            self._move_heads(log, end)

    def _chained_again(self, log: Path) -> End:
        path, chain = self.root / log, _first(log)
        entries = [_carried(log, number, line) for number, line in enumerate(_split(path)[0], start=1)]
        lines = []
        for entry in entries:
            chain = digest([chain, entry])
            lines.append(canonical_json(entry | {"chain": chain}) + b"\n")
        if path.exists():
            replace(path, b"".join(lines))
        return len(lines), chain

    def _end(self, log: Path, file: BinaryIO) -> End:
        """Return the number and the digest of the last complete line, read from the end of the file alone."""
        number, chain = self._head(log).end
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_SIZE))
        lines = file.read().split(b"\n")[:-1][-2:]
        chains = [_chain_of(line) for line in lines]
        if chains[-1:] == [chain] or (number == 0 and not lines):
            end = number, chain
        elif chains[-2:-1] == [chain] or (number == 0 and len(lines) == 1):  # killed before the head was moved
            end = number + 1, _checked(log, number + 1, lines[-1], chain)[1]
        else:
            raise _damaged(f"line {number} of {log}", "it is not the last line, or not as written")
        _refuse_older_head(log, number, self._seen(log))
        return end

    def _head(self, log: Path) -> Head:
        place = _head_of(log)
        refuse_link(self.root / log, len(log.parts), f"{log}", _LOG_REMEDY)
        found = read_value(self.root, place, f"the head of {log} ({place})", _LOG_REMEDY)
        number, chain, *others = (found or "").split(" ") if found else ("", "")
        if not number:
            raise _damaged(f"the head of {log} ({place})", "it is missing", "the number and digest of the last line")
        return Head((int(number), chain), _parsed(others))

    def _ends(self) -> dict[str, End]:
        """Return the ends of all logs that `ends` names; none in a store to which this version has appended nothing yet."""
        found = read_value(self.root, ENDS, f"the ends of all logs ({ENDS})", _LOG_REMEDY)
        if found is None and any(ENDS in head.seen for head in self._other_heads(None).values()):
            raise _damaged(
                f"the ends of all logs ({ENDS})", "they are missing", "the number and digest of each log's last line"
            )
        return _parsed((found or "").split())

    def _seen(self, log: Path) -> dict[str, End]:
        """Return the ends of a log that `ends` and the heads of the others name. A damaged head is reported with its own log."""
        found = {_head_of(other): head.seen.get(log.name) for other, head in self._other_heads(log).items()}
        found[ENDS] = self._ends().get(log.name)
        return {place: end for place, end in found.items() if end is not None}

    def _other_heads(self, log: Path | None) -> dict[Path, Head]:
        found: dict[Path, Head] = {}
        for other in LOGS:
            try:
                found |= {other: self._head(other)} if other != log else {}
            except DamagedError:
                continue
        return found

    def _move_heads(self, log: Path, end: End) -> None:
        """Write the end of a log into its own head, with those of the others, into theirs, and into `ends`. No end is lowered."""
        others = self._other_heads(log)
        if not (self.root / ENDS).exists():  # before the first head that names it
            self._write_ends({each.name: head.end for each, head in others.items()})
        place = self.root / _head_of(log)
        seen = dict(self._head(log).seen) if place.exists() else {}
        seen |= {each.name: head.end for each, head in others.items() if head.end > seen.get(each.name, (0, ""))}
        self._write_head(log, Head(end, {**seen, **_NAMES_ENDS}))
        for other, head in others.items():
            self._write_head(other, Head(head.end, {**head.seen, log.name: end, **_NAMES_ENDS}))
        self._write_ends({**self._ends(), log.name: end})

    def _write_ends(self, ends: Mapping[str, End]) -> None:
        write_value(self.root, ENDS, " ".join(_written(ends)))

    def _write_head(self, log: Path, head: Head) -> None:
        write_value(self.root, _head_of(log), head.text)

    def _stamp(self) -> list[object]:
        """Return what is another value after each step of a write to a log."""
        places = (*map(_head_of, LOGS), ENDS)
        return [*(_size(f"{self.root}/{log}") for log in LOGS), *(_content(f"{self.root}/{place}") for place in places)]


def _written(ends: Mapping[str, End]) -> list[str]:
    return [f"{name}={number}:{chain}" for name, (number, chain) in sorted(ends.items())]


def _parsed(texts: Sequence[str]) -> dict[str, End]:
    parts = (text.replace("=", ":").split(":") for text in texts)
    return {name: (int(number), chain) for name, number, chain in parts}


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


@cache
def _head_of(log: Path) -> str:
    return log.with_suffix(".head").as_posix()


def _refuse_older_head(log: Path, number: int, seen: Mapping[str, End]) -> None:
    """Raise DamagedError for a log that has fewer lines than another head names: a log and its head were replaced by older ones."""
    for head, (named, _) in seen.items():
        if named > number:
            raise _damaged(f"{log}", f"it is older: its head names {number} lines", f"{named}, as {head} says")


@cache
def _first(log: Path) -> str:
    """Return the digest before the first line: another one for each log, so that logs cannot be swapped."""
    return digest(log.as_posix())


def _split(path: Path) -> tuple[list[bytes], bytes]:
    """Return the complete lines of a log, and what follows the last line end."""
    *lines, torn = (path.read_bytes() if path.exists() else b"").split(b"\n")
    return lines, torn


def _checked(log: Path, number: int, line: bytes, before: str) -> tuple[dict[str, Any], str]:
    """Return the entry of a line and its digest. Raises DamagedError unless it was written after the line `before`."""
    entry = _carried(log, number, line)
    chain = digest([before, entry])
    if line != canonical_json(entry | {"chain": chain}):
        raise _damaged(f"line {number} of {log}", "it, or the line before, is not as written")
    return entry, chain


def _carried(log: Path, number: int, line: bytes) -> dict[str, Any]:
    """Return the entry of a line without its digest. Raises DamagedError for a line without the field of the log."""
    required = LOGS[log]
    try:
        entry: dict[str, Any] = parse_json(line)
        return {name: entry[name] for name in {**entry, required: None} if name != "chain"}
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(f"line {number} of {log}", "it is not an entry", f"JSON with a {required}") from error


def _chain_of(line: bytes) -> str | None:
    try:
        found: str = parse_json(line)["chain"]
    except (ValueError, TypeError, KeyError):
        return None
    return found


def _damaged(subject: str, found: str, expected: str = "the line that was written") -> DamagedError:
    return DamagedError(subject, found, expected, _LOG_REMEDY)
