"""Logs of a store in a bucket: one key, `logs`, that each append replaces only if it is still the one that was read.

It holds the number of the lines of each log, the last of them, and the digests of the segments with those before, which are keys
of their own and never replaced. A line has a number, and the key never has the bytes that it had before: its tag is that of one
state of all logs, and whoever appends has seen every move before. A request whose answer was lost is told from that of another
writer by its token.
"""

import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.core.digests import text_sha256
from pipeline.core.errors import DamagedError, LockedError, StoreError
from pipeline.storage.bucket_client import BucketClient, RefusedError
from pipeline.storage.storage import Lines, LogConflictError

_KEY = "logs"
_NUM_LAST = 64
"""Lines that `logs` itself holds of each log before they become a segment."""
_NUM_TRIES = 6
_REMEDY = "Restore it from a backup of the bucket. A versioned bucket has the one before."
Entries = list[list[str]]
"""Lines with the token of who appended each."""


@dataclass(frozen=True)
class LogsState:
    """The content of `logs`. `collection` is the number of garbage collections that were begun."""

    collection: int
    segments: Mapping[str, list[list[Any]]]
    """Name of a log -> the number of the last line, and the digest, of each segment."""
    last: Mapping[str, Entries]

    def count(self, log: str) -> int:
        """Return the number of lines of a log."""
        return self.num_in_segments(log) + len(self.last.get(log, []))

    def num_in_segments(self, log: str) -> int:
        """Return the number of lines of a log that are in segments."""
        return int(self.segments[log][-1][0]) if self.segments.get(log) else 0

    def content(self) -> bytes:
        """Return the bytes of the key."""
        fields = {"collection": self.collection, "segments": dict(self.segments), "last": dict(self.last)}
        text = json.dumps(fields, sort_keys=True)
        return json.dumps({"state": fields, "digest": text_sha256(text)}, sort_keys=True).encode()


class SharedLogs:
    """The logs of a store in a bucket, as this process last read them."""

    def __init__(self, client: BucketClient) -> None:
        self._client = client
        self._tag = ""
        self._pulled: str | None = None
        self._state: LogsState | None = None

    def create(self) -> None:
        """Make empty logs, if there are none. Raises StoreError for a bucket without conditional puts."""
        probe = f"leases/probe-{secrets.token_hex(8)}"
        try:
            self._client.create(probe, b"1")
            is_ignored = self._client.create(probe, b"2") or self._client.swap(probe, b"3", '"0"')
        finally:
            self._client.delete(probe)
        if is_ignored:
            found, expected = "the server ignores If-None-Match or If-Match on puts", "a server that heeds them"
            raise self._client.refuse(found, expected, "Refs cannot be moved safely in it. Use another one.")
        self._client.create(_KEY, LogsState(0, {}, {}).content())

    def pull(self, known: Callable[[], Lines], take: Callable[[Lines], None]) -> None:
        """Give `take` the lines of all logs, unless they are as it last had them. `known` are those that are here."""
        found = self._client.get(_KEY, unless=self._pulled)
        if found is None:
            if self._pulled is None:
                raise DamagedError("the logs of the store", "they are missing", "", _REMEDY)
            return
        self._state, self._tag, self._pulled = self._parsed(found[0]), found[1], None
        here = known()
        take({log: self._lines(log, here.get(log, [])) for log in sorted({*self._state.last, *here})})
        self._pulled = found[1]

    def current_collection(self) -> int | None:
        """Return the number of garbage collections that were begun; None in a store that has no logs yet."""
        found = self._client.get(_KEY)
        return self._parsed(found[0]).collection if found else None

    def publish(self, log: str, number: int, line: bytes, collection: int | None) -> None:
        """Append the line of that number. Raises LogConflictError if another writer was first, LockedError if a collection ran
        since the one of that number, which is the last that this process knows to have ended before it began.
        """
        before, token = self._state, secrets.token_hex(8)
        if before is None or before.count(log) != number - 1:
            raise LogConflictError(f"log {log}", "it has other lines by now")
        if collection is not None and before.collection != collection:
            remedy = "Run again: what it removed is made again."
            raise LockedError("store", "a garbage collection ran while this process gave no sign of life", "", remedy)
        self._swap(self._appended(before, log, [token, line.decode()]), lambda: self._is_ours(log, number, token))

    def begin_collection(self) -> None:
        """Count one more garbage collection: whoever holds the store since before can no longer append."""
        while True:
            found = self._client.get(_KEY)
            if found is None:
                return
            before, self._tag = self._parsed(found[0]), found[1]
            after = LogsState(before.collection + 1, before.segments, before.last)
            try:
                self._swap(after, lambda: False)
            except LogConflictError:
                continue
            return

    def _swap(self, after: LogsState, is_ours: Callable[[], bool]) -> None:
        content, lost, tag = after.content(), StoreError("store", "no answer"), self._tag
        self._pulled = None  # what was read before is no longer what is there
        for number in range(_NUM_TRIES):
            try:
                found = self._client.swap(_KEY, content, tag)
            except RefusedError:
                raise
            except StoreError as error:  # whether it was written is not known: the same request is sent again
                lost = error
                time.sleep(0.1 * 2**number)
                continue
            if found or is_ours():
                return
            raise LogConflictError("logs", "another writer was first")
        raise lost

    def _is_ours(self, log: str, number: int, token: str) -> bool:
        found = self._client.get(_KEY)
        if found is None:
            return False
        state = self._parsed(found[0])
        entries, first = state.last.get(log, []), state.num_in_segments(log)
        if number <= first:
            entries, first = self._in_segment(state, log, number)
        return len(entries) >= number - first and entries[number - first - 1][0] == token

    def _appended(self, before: LogsState, log: str, entry: list[str]) -> LogsState:
        segments, last = dict(before.segments), dict(before.last)
        if len(last.get(log, [])) >= _NUM_LAST:
            content = json.dumps(last[log])
            segment = [before.count(log), text_sha256(content)]
            self._client.put(_place(log, segment), content.encode())
            segments[log], last[log] = [*segments.get(log, []), segment], []
        last[log] = [*last.get(log, []), entry]
        return LogsState(before.collection, segments, last)

    def _lines(self, log: str, here: list[bytes]) -> list[bytes]:
        """Return the lines of a log: those of segments that are here are not read again, the digest of the next covers them."""
        assert self._state is not None
        num_sealed, lines = self._state.num_in_segments(log), list(here)
        if len(lines) < num_sealed:
            lines = []
            for segment in self._state.segments.get(log, []):
                lines += [line.encode() for _, line in self._segment(log, segment)]
        return lines[:num_sealed] + [line.encode() for _, line in self._state.last.get(log, [])]

    def _in_segment(self, state: LogsState, log: str, number: int) -> tuple[Entries, int]:
        first = 0
        for segment in state.segments.get(log, []):
            if number <= segment[0]:
                return self._segment(log, segment), first
            first = segment[0]
        return [], first

    def _segment(self, log: str, segment: list[Any]) -> Entries:
        found = self._client.get(_place(log, segment))
        if found is None or text_sha256(found[0].decode("utf-8", "replace")) != segment[1]:
            what = "missing" if found is None else "not as written"
            raise DamagedError(f"lines up to {segment[0]} of log {log}", f"they are {what}", "", _REMEDY)
        entries: Entries = json.loads(found[0])
        return entries

    def _parsed(self, content: bytes) -> LogsState:
        try:
            found = json.loads(content)
            state = LogsState(**found["state"])
            is_sound = found["digest"] == text_sha256(json.dumps(found["state"], sort_keys=True))
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedError("the logs of the store", f"they cannot be read ({error})", "", _REMEDY) from error
        if not is_sound:
            raise DamagedError("the logs of the store", "their digest is not that of their content", "", _REMEDY)
        return state


def _place(log: str, segment: list[Any]) -> str:
    return f"log/{log}/{segment[0]:010d}-{segment[1]}"
