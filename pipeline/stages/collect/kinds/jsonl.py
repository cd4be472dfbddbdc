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
from pipeline.core.errors import ArchiveError
from pipeline.pins.pins import FilePin
from pipeline.stages.collect.contents import (
    ReadFile,
    ReadOptions,
    SeenPaths,
    SkippedFile,
    SourceContents,
    over_limit,
)
from pipeline.stages.collect.kinds.source_kind import SourceKind, newest_file
from pipeline.stages.collect.listing import list_lines
from pipeline.stages.collect.params import CollectParams

FieldName = Annotated[str, Field(min_length=1)]
BAD_LINE = "bad_line"
MAX_NESTING = 100
"""Lists and objects within each other in a line. Deeper ones end where Python's stack does, which is no count of the line."""
_MAX_ESCAPE_BYTES = 6
"""JSON writes one byte of text as at most six bytes."""
_OTHER_FORMS = {
    b"\xef\xbb\xbf": "begins with a byte-order mark",
    b"\xff\xfe": "is in UTF-16 or UTF-32",
    b"\xfe\xff": "is in UTF-16",
    b"\x1f\x8b": "is compressed with gzip",
    b"\xfd7zXZ": "is compressed with xz",
    b"BZh": "is compressed with bzip2",
    b"\x28\xb5\x2f\xfd": "is compressed with Zstandard",
    b"PK\x03\x04": "is a zip archive",
    b"PAR1": "is a Parquet file",
}
"""First bytes of files that are no JSON lines, and what they are."""
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
    files: list[ReadFile] = []
    skipped: list[SkippedFile] = []
    seen = SeenPaths()
    with lines.open("rb") as file:
        _refuse_other_form(file, subject)
        for number, line in _lines(file, limits):
            if number > limits.max_members:
                raise over_limit(subject, f"has more lines than {limits.max_members}", f"{limits.max_members} lines")
            try:
                read = _files_of(line, pin, options, seen)
            except _BadLineError as flaw:
                skipped.append(SkippedFile(f"line {number}", len(line), BAD_LINE, f"line {number}: {flaw}"))
                continue
            path, num_bytes = read[0].path, read[0].num_bytes
            reason = options.reason_to_skip(path, num_bytes) if options.selection.accepts(path) else "excluded"
            if reason:
                skipped.append(SkippedFile(path, num_bytes, reason, f"line {number}"))
            else:
                files += (options.read_file(file.path, file.content) for file in read)
    return SourceContents.of([*files, *sorted(skipped, key=lambda drop: drop.detail)])


def _refuse_other_form(file: BinaryIO, subject: str) -> None:
    """Raise ArchiveError for a file that is compressed, in UTF-16, or one JSON array: no line of it could be read."""
    start = file.read(4_096)
    file.seek(0)
    found = next((form for mark, form in _OTHER_FORMS.items() if start.startswith(mark)), "")
    if not found and start.lstrip()[:1] == b"[":
        found = "is a JSON array"
    if not found and b"\0" in start.partition(b"\n")[0][:2]:
        found = "is in UTF-16 or UTF-32"
    if found:
        remedy = "Convert it to one JSON object a line, in UTF-8, not compressed, and pin that."
        raise ArchiveError(subject, found, "JSON lines in UTF-8 without a byte-order mark", remedy)


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


def _files_of(line: bytes, pin: Mapping[str, Any], options: ReadOptions, seen: SeenPaths) -> list[ReadFile]:
    """Return the file that a line holds, with its `.license` sidecar if it names a license. Raises _BadLineError."""
    record = _record_of(line)
    path, license = _path_of(record, pin["path_field"], options), _license_of(record, pin["license_field"])
    files = [ReadFile(path, _string(record, pin["text_field"]).encode())]
    if license:
        files.append(ReadFile(f"{path}.license", ("SPDX-License-" + f"Identifier: {license}\n").encode()))
    if options.selection.accepts(path) and (clash := seen.clash(*(file.path for file in files))):
        raise _BadLineError(clash)
    return files


def _record_of(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refuse_constant)
        is_deep = _is_deep(record)
    except UnicodeDecodeError as error:
        raise _BadLineError(f"it is not UTF-8 at byte {error.start}") from error
    except RecursionError:
        is_deep = True
    except ValueError as error:
        raise _BadLineError(f"it is not JSON ({error})") from error
    if is_deep:
        raise _BadLineError(f"it is nested deeper than {MAX_NESTING}")
    if not isinstance(record, dict):
        raise _BadLineError(f"it is of type {type(record).__name__}, not an object")
    return record


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a name twice")
    return found


def _refuse_constant(name: str) -> None:
    """Refuse NaN and infinities, which JSON does not have: other readers refuse the line."""
    raise ValueError(f"{name} is not a number of JSON")


def _is_deep(value: Any) -> bool:
    """Return whether lists and objects are within each other deeper than the limit."""
    level = [value]
    for _ in range(MAX_NESTING + 1):
        level = [
            each
            for outer in level
            if isinstance(outer, (list, dict))
            for each in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def _path_of(record: dict[str, Any], field: str, options: ReadOptions) -> str:
    try:
        return options.checked_file_path(_string(record, field))
    except ArchiveError as error:
        raise _BadLineError(f"its path {error.subject.removeprefix(f'{options.source}: ')} {error.found}") from error


def _license_of(record: dict[str, Any], field: str | None) -> str:
    license = _string(record, field) if field and record.get(field) is not None else ""
    if license and not _LICENSE.fullmatch(license):
        raise _BadLineError(f"its `{field}` is {license[:60]!r}, not a license expression")
    return license


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
    max_expansion=1,
    listing=lambda pin, path, num_bytes: list_lines(path, pin["path_field"], pin["text_field"], pin["license_field"]),
    newest=newest_file,
)
