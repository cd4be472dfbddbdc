"""Cache of results on disk, one JSON file each. A damaged entry is ignored, and one that cannot be written is skipped."""

import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeline.core.params import digest

_FORMAT = 5
"""Part of each key, raised when what the entries hold changes."""


class ResultCache:
    """Entries of one kind by key, in a folder that may be deleted at any time. Without a folder it is always empty."""

    def __init__(self, folder: Path | None, kind: str) -> None:
        self._folder = folder
        self._kind = kind

    def read(self, key: object) -> dict[str, Any] | None:
        """Return the entry of a key; None if it is missing or damaged."""
        path = self._path(key)
        try:
            if path is None:
                return None
            entry: dict[str, Any] = json.loads(path.read_bytes())
            return entry if entry.pop("digest") == digest([path.name, entry]) else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def write(self, key: object, entry: Mapping[str, Any]) -> None:
        """Write an entry, whole or not at all."""
        path = self._path(key)
        if path is None:
            return
        temporary = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps({**entry, "digest": digest([path.name, entry])}), encoding="utf-8")
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()

    def _path(self, key: object) -> Path | None:
        return self._folder and self._folder / f"{digest([_FORMAT, key])}.{self._kind}"
