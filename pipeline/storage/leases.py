"""Leases of names in a bucket, which writers on several machines hold as processes of one machine hold a lock.

A lease is a key that its holder writes anew every few seconds. Whoever waits for it takes it over once its bytes have stayed the
same for `LEASE_SECONDS` of its own clock: no clocks of two machines are compared. Whoever holds the lock of the same name in the
same cache takes it at once: the kernel has released that lock from a dead process. A holder that was stopped for longer has lost
it and learns so; refs are safe without it, as a move of a ref is refused by the logs themselves.
"""

import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pipeline.core.errors import LockedError, StoreError
from pipeline.storage.bucket_client import BucketClient

LEASE_SECONDS = 45.0
"""Time without a sign of life after which a lease is free."""
BEAT_SECONDS = 5.0
"""Time between two signs of life."""
_POLL_SECONDS = 0.2


@dataclass
class Lease:
    """A lease that this process holds. `is_lost` once another one took it over."""

    key: str
    who: str
    cache: str
    token: str
    tag: str = ""
    num_beats: int = 0
    is_lost: bool = False

    def content(self) -> bytes:
        """Return what the key holds, which is another value after each sign of life."""
        fields = {
            "who": self.who,
            "cache": self.cache,
            "host": os.uname().nodename,
            "token": self.token,
            "beat": self.num_beats,
        }
        return json.dumps(fields).encode()


class Leases:
    """The leases of one process, kept alive by a thread. `cache` names the folder in which it holds the locks of the same names."""

    def __init__(self, client: BucketClient, cache: str) -> None:
        self._client = client
        self._cache = cache
        self._held: list[Lease] = []
        self._ends = threading.Event()
        self._guard = threading.Lock()

    @contextmanager
    def held(
        self, key: str, who: str, wait_seconds: float, on_wait: Callable[[str], None], subject: str
    ) -> Iterator[Lease]:
        """Hold a lease, and give it back. Raises LockedError after `wait_seconds` while another process holds it."""
        lease = Lease(key, who, self._cache, secrets.token_hex(8))
        self._take(lease, wait_seconds, on_wait, subject)
        self._keep(lease)
        try:
            yield lease
        finally:
            self._give_back(lease)

    @property
    def lost(self) -> list[Lease]:
        """The leases that this process believed to hold and that another one took over."""
        return [lease for lease in self._held if lease.is_lost]

    def living(self, keys: Callable[[], list[str]], wait_seconds: float) -> str:
        """Return who holds one of these leases, with signs of life, after `wait_seconds`, or nothing.

        Those of dead processes are removed.
        """
        deadline, seen = time.monotonic() + wait_seconds, _Seen()
        while True:
            found = [(key, self._client.get(key)) for key in keys()]
            held = {key: content[0] for key, content in found if content}
            dead = [
                key for key, content in held.items() if self._is_of_this_cache(content) or seen.is_dead(key, content)
            ]
            for key in dead:
                self._client.delete(key)
                del held[key]
            if not held or (time.monotonic() >= deadline and seen.num_changed):
                return _holder(min(held.values())) if held else ""
            time.sleep(_POLL_SECONDS)

    def _take(self, lease: Lease, wait_seconds: float, on_wait: Callable[[str], None], subject: str) -> None:
        deadline, seen, is_told = time.monotonic() + wait_seconds, _Seen(), False
        while True:
            tag = self._client.create(lease.key, lease.content())
            found = None if tag else self._client.get(lease.key)
            if found and _token(found[0]) == lease.token:  # a request that was sent twice
                tag = found[1]
            elif found and (self._is_of_this_cache(found[0]) or seen.is_dead(lease.key, found[0])):
                tag = self._client.swap(lease.key, lease.content(), found[1])
            if tag:
                lease.tag = tag
                return
            holder = _holder(found[0]) if found else "another writer"
            if time.monotonic() >= deadline:
                remedy = f"Wait until that has ended, or {LEASE_SECONDS:.0f} s after it died, then run again."
                raise LockedError(subject, f"it is held by {holder}", "", remedy)
            if not is_told:
                on_wait(holder)
                is_told = True
            time.sleep(_POLL_SECONDS)

    def _is_of_this_cache(self, content: bytes) -> bool:
        return _fields(content).get("cache") == self._cache

    def _keep(self, lease: Lease) -> None:
        with self._guard:
            self._held.append(lease)
            if len(self._held) == 1:
                self._ends = threading.Event()
                threading.Thread(target=self._beat, args=(self._ends,), daemon=True).start()

    def _give_back(self, lease: Lease) -> None:
        with self._guard:
            self._held.remove(lease)
            if not self._held:
                self._ends.set()
            if not lease.is_lost:
                self._client.delete(lease.key)

    def _beat(self, ends: threading.Event) -> None:
        while not ends.wait(BEAT_SECONDS):
            with self._guard:
                for lease in self._held:
                    if not (ends.is_set() or lease.is_lost):
                        self._renew(lease)

    def _renew(self, lease: Lease) -> None:
        lease.num_beats += 1
        try:
            tag = self._client.swap(lease.key, lease.content(), lease.tag)
            found = None if tag else self._client.get(lease.key)
        except StoreError:  # no answer: the next beat tries again
            return
        if found and _token(found[0]) == lease.token:
            tag = found[1]
        lease.tag, lease.is_lost = tag or lease.tag, not tag


class _Seen:
    """The content of keys, and when it was first seen so."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[bytes, float]] = {}
        self.num_changed = 0
        """Signs of life."""

    def is_dead(self, key: str, content: bytes) -> bool:
        """Return whether the content of a key has stayed the same for so long that its holder is dead."""
        before, since = self._found.get(key, (b"", 0.0))
        if before != content:
            self.num_changed += bool(before)
            self._found[key] = (content, time.monotonic())
            return False
        return time.monotonic() - since >= LEASE_SECONDS


def _token(content: bytes) -> str:
    return str(_fields(content).get("token", ""))


def _holder(content: bytes) -> str:
    fields = _fields(content)
    return f"{fields.get('who') or 'another process'} on {fields.get('host', 'another machine')}"


def _fields(content: bytes) -> dict[str, object]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
