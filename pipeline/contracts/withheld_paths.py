"""Withheld path: what a file whose path holds a secret or an e-mail address is called after collect, by the path's digest."""

import hashlib
from collections.abc import Iterable

from pipeline.core.change_text import change_path, changed_file

_PREFIX = "withheld-path-sha256:"


def withheld_path(path: str) -> str:
    """Return the path by which a file is stored whose own path must not be; that of a change keeps its commit."""
    file = changed_file(path)
    called = _PREFIX + hashlib.sha256(file.encode("utf-8", "surrogateescape")).hexdigest()
    return called if file == path else change_path(path.removesuffix(f":{file}"), called)


def is_withheld(path: str) -> bool:
    """Return whether a path is one of `withheld_path`."""
    return changed_file(path).startswith(_PREFIX)


def collected_path(path: str, collected: Iterable[str]) -> str:
    """Return which of the collected paths a withheld one stands for. Another path, and one of none of them, stays as it is."""
    return next((each for each in collected if withheld_path(each) == path), path) if is_withheld(path) else path
