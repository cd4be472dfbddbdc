"""Parsing of TOML that somebody else wrote, in bounded time and memory, with one error for whatever is wrong with it."""

import re
import tomllib
from pathlib import Path
from typing import Any

MAX_TOML_BYTES = 4 * 1024**2
_MAX_NUM_PARTS = 64
_TOO_DEEP = "its values are nested too deeply"
# The parser's memory or time grows with the square of the parts of a dotted key, of a header and within braces too: 100 kB of
# `a.a.a` took 5 GB.
_LONG_KEY = re.compile(
    r"""(?:^|[\[{,])[ \t]*(?:(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){""" f"{_MAX_NUM_PARTS}}}",
    re.MULTILINE,
)


def parse_toml(content: bytes | str) -> dict[str, Any]:
    """Parse TOML, with or without a byte-order mark. Raises ValueError for what is not TOML, or too large or deep to be read."""
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        if len(text) > MAX_TOML_BYTES:
            raise ValueError(f"it has more than {MAX_TOML_BYTES} characters")
        if _LONG_KEY.search(text):
            raise ValueError(f"it has a key of more than {_MAX_NUM_PARTS} parts")
        parsed = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    if _is_deep(parsed):
        raise ValueError(_TOO_DEEP)
    return parsed


def _is_deep(parsed: dict[str, Any]) -> bool:
    """Return whether tables and arrays are nested deeper than a key may be long: headers nest them at no depth of the parser."""
    level: list[Any] = [parsed]
    for _ in range(_MAX_NUM_PARTS + 1):
        level = [each for value in level for each in (value.values() if isinstance(value, dict) else value)]
        level = [value for value in level if isinstance(value, dict | list)]
        if not level:
            return False
    return True


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; of one without end, as `/dev/zero`, no more than can be one. Raises OSError and ValueError."""
    with path.open("rb") as file:
        return parse_toml(file.read(4 * MAX_TOML_BYTES + 4))
