"""Entries of the caches. An entry that cannot be written is skipped: its result is used all the same."""

import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def remember(entry: Path, kept: Mapping[str, Any]) -> None:
    """Write an entry, whole or not at all."""
    arriving = entry.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        arriving.write_text(json.dumps(kept), encoding="utf-8")
        arriving.replace(entry)
    except OSError:
        with suppress(OSError):
            arriving.unlink()
