"""The source kind `jsonl`: a file of JSON lines. Each valid line becomes a file, each invalid one a drop with its number.

The license that a line names becomes the file's `.license` sidecar, as in REUSE, so that it is treated like any other.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

from pydantic import Field, model_validator

from pipeline.contracts.part import PartJob
from pipeline.core.digests import file_sha256
from pipeline.pins.local_tree import printable_path
from pipeline.pins.pins import FilePin
from pipeline.stages.collect.contents import (
    ReadFile,
    ReadOptions,
    SkippedFile,
    SourceContents,
    flaw_of_name,
    over_limit,
)
from pipeline.stages.collect.kinds.source_kind import SourceKind
from pipeline.stages.collect.listing import list_lines
from pipeline.stages.collect.params import CollectParams

FieldName = Annotated[str, Field(min_length=1)]
BAD_LINE = "bad_line"
_MAX_ESCAPE_BYTES = 6
"""JSON writes one byte of text as at most six bytes."""
_LICENSE = re.compile(r"[A-Za-z0-9.+:() -]{1,1000}")


class JsonlPin(FilePin):
    """A file of JSON lines, and the names of the fields that hold a document's text, path and license."""

    kind: Literal["jsonl"] = "jsonl"
    text_field: FieldName = "text"
    path_field: FieldName = "path"
    license_field: FieldName | None = None

    @model_validator(mode="after")
    def _has_no_build(self) -> "JsonlPin":
        if self.build is not None:
            raise ValueError("no `build`: JSON lines are not a tree that could be built")
        return self


class _BadLineError(Exception):
    """An error in a line."""


def _read(job: PartJob, path: Path, options: ReadOptions) -> SourceContents:
    return read_lines(path, job.identity, options)


def read_lines(lines: Path, pin: Mapping[str, Any], options: ReadOptions) -> SourceContents:
    """Read the files that the lines hold, sorted by path; `pin` names their fields. Raises ArchiveError over the limits."""
    subject, limits = options.source, options.limits
    if lines.stat().st_size > limits.max_total_bytes:
        raise over_limit(subject, f"has {lines.stat().st_size} bytes", f"{limits.max_total_bytes} bytes in all")
    files: dict[str, ReadFile] = {}
    skipped: list[SkippedFile] = []
    with lines.open("rb") as file:
        for number, line in _lines(file, limits):
            if number > limits.max_members:
                raise over_limit(subject, f"has more lines than {limits.max_members}", f"{limits.max_members} lines")
            try:
                path, text, license = _record_of(line, pin, limits)
                if path in files or f"{path}.license" in files:
                    raise _BadLineError(f"its path {path!r} was there before")
            except _BadLineError as flaw:
                skipped.append(SkippedFile(f"line {number}", len(line), BAD_LINE, f"line {number}: {flaw}"))
                continue
            reason = options.reason_to_skip(path, len(text)) if options.selection.accepts(path) else "excluded"
            if reason:
                skipped.append(SkippedFile(path, len(text), reason, f"line {number}"))
                continue
            files[path] = ReadFile(path, text)
            if license:
                sidecar = f"{path}.license"
                files[sidecar] = ReadFile(sidecar, ("SPDX-License-" + f"Identifier: {license}\n").encode())
    return SourceContents.of([*files.values(), *sorted(skipped, key=lambda drop: drop.detail)])


def _lines(file: BinaryIO, limits: CollectParams) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers from 1; of a line that is too long, only its beginning."""
    longest = _MAX_ESCAPE_BYTES * limits.max_file_bytes + limits.max_path_bytes + 65_536
    number = 0
    while line := file.readline(longest):
        number += 1
        rest = line
        while not rest.endswith(b"\n") and (rest := file.readline(longest)):
            pass
        if line.strip():
            yield number, line


def _record_of(line: bytes, pin: Mapping[str, Any], limits: CollectParams) -> tuple[str, bytes, str]:
    try:
        record = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _BadLineError(f"it is not UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:
        raise _BadLineError(f"it is not JSON ({error})") from error
    if not isinstance(record, dict):
        raise _BadLineError(f"it is of type {type(record).__name__}, not an object")
    path, license_field = _string(record, pin["path_field"]), pin["license_field"]
    flaw = _flaw_of_path(path, limits)
    if flaw:
        raise _BadLineError(f"its path {path[:200]!r} {flaw}")
    license = _string(record, license_field) if license_field and record.get(license_field) is not None else ""
    if license and not _LICENSE.fullmatch(license):
        raise _BadLineError(f"its `{license_field}` is {license[:60]!r}, not a license expression")
    return printable_path(path), _string(record, pin["text_field"]).encode(), license


def _flaw_of_path(path: str, limits: CollectParams) -> str:
    parts = path.replace("\\", "/").split("/")
    num_bytes = len(path.encode("utf-8", "surrogateescape"))
    if num_bytes > limits.max_path_bytes or len(parts) - 1 > limits.max_depth:
        return f"has {num_bytes} bytes and is {len(parts) - 1} folders deep"
    return flaw_of_name(path) or ("has an empty part" if {"", "."} & set(parts) else "")


def _string(record: dict[str, Any], field: str) -> str:
    value = record.get(field)
    if not isinstance(value, str):
        raise _BadLineError(f"`{field}` is {'missing' if field not in record else f'of type {type(value).__name__}'}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _BadLineError(f"`{field}` holds half of a surrogate pair at {error.start}") from error
    return value


def _propose(path: Path) -> dict[str, str] | None:
    is_lines = path.is_file() and path.suffix == ".jsonl"
    return {"path": str(path), "sha256": file_sha256(path)} if is_lines else None


KIND = SourceKind(
    JsonlPin,
    lambda pin, fetcher: fetcher.file(pin, "a file of JSON lines"),
    _read,
    _propose,
    listing=lambda pin, path: list_lines(path, pin["path_field"], pin["license_field"]),
)
