"""A file of JSON lines as a source: each line that makes sense is a file, each that does not is a drop with its number.

A license that a line names becomes the file's `.license` sidecar, as REUSE has it, so that it is judged like any other.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pipeline.collect.archives.containers import over_limit
from pipeline.collect.archives.unpack import Contents, ReadFile, SkippedFile, flaw_of_path, reason_to_skip
from pipeline.collect.params import CollectParams
from pipeline.pins.local_tree import printable_path
from pipeline.pins.selection import Selection

BAD_LINE = "bad_line"
_MAX_ESCAPE_BYTES = 6
"""JSON spells one byte of text with at most six of its own."""
_LICENSE = re.compile(r"[A-Za-z0-9.+:() -]{1,1000}")


@dataclass(frozen=True, slots=True)
class Fields:
    """The names of the fields of a line that hold the text, its path and, where there is one, its license."""

    text: str
    path: str
    license: str | None


class _BadLineError(Exception):
    """What is wrong with a line."""


def read_lines(place: Path, fields: Fields, selection: Selection, limits: CollectParams, subject: str) -> Contents:
    """The files that the lines hold, sorted by path. Raises ArchiveError over the limits."""
    if place.stat().st_size > limits.max_total_bytes:
        raise over_limit(subject, f"has {place.stat().st_size} bytes", f"{limits.max_total_bytes} bytes in all")
    files: dict[str, ReadFile] = {}
    sidecars: dict[str, ReadFile] = {}
    skipped: list[SkippedFile] = []
    with place.open("rb") as file:
        for number, line in _lines(file, limits):
            if number > limits.max_members:
                raise over_limit(subject, f"has more lines than {limits.max_members}", f"{limits.max_members} lines")
            try:
                path, text, license = _record_of(line, fields, limits)
                if path in files or f"{path}.license" in files or path in sidecars:
                    raise _BadLineError(f"its path {path!r} was there before")
            except _BadLineError as flaw:
                skipped.append(SkippedFile(f"line {number}", len(line), BAD_LINE, f"line {number}: {flaw}"))
                continue
            reason = reason_to_skip(path, len(text), limits) if selection.accepts(path) else "excluded"
            if reason:
                skipped.append(SkippedFile(path, len(text), reason, f"line {number}"))
                continue
            files[path] = ReadFile(path, text)
            if license:
                sidecar = f"{path}.license"
                sidecars[sidecar] = ReadFile(sidecar, ("SPDX-License-" + f"Identifier: {license}\n").encode())
    every = {**files, **sidecars}
    skipped.sort(key=lambda drop: (drop.path, drop.detail))
    return Contents(tuple(every[path] for path in sorted(every)), tuple(skipped))


def _lines(file: BinaryIO, limits: CollectParams) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers from 1. Of one that is too long, the beginning alone."""
    longest = _MAX_ESCAPE_BYTES * limits.max_file_bytes + limits.max_path_bytes + 65_536
    number = 0
    while line := file.readline(longest):
        number += 1
        rest = line
        while not rest.endswith(b"\n") and (rest := file.readline(longest)):
            pass
        if line.strip():
            yield number, line


def _record_of(line: bytes, fields: Fields, limits: CollectParams) -> tuple[str, bytes, str]:
    try:
        record = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _BadLineError(f"it is not UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:
        raise _BadLineError(f"it is not JSON ({error})") from error
    if not isinstance(record, dict):
        raise _BadLineError(f"it is of type {type(record).__name__}, not an object")
    path = _string(record, fields.path)
    flaw = flaw_of_path(path, limits)
    if flaw:
        raise _BadLineError(f"its path {path[:200]!r} {flaw}")
    license = _string(record, fields.license) if fields.license and record.get(fields.license) is not None else ""
    if license and not _LICENSE.fullmatch(license):
        raise _BadLineError(f"its `{fields.license}` is {license[:60]!r}, which is no license expression")
    return printable_path(path), _string(record, fields.text).encode(), license


def _string(record: dict[str, Any], field: str) -> str:
    value = record.get(field)
    if not isinstance(value, str):
        raise _BadLineError(f"`{field}` is {'missing' if field not in record else f'of type {type(value).__name__}'}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _BadLineError(f"`{field}` holds half of a surrogate pair at {error.start}") from error
    return value
