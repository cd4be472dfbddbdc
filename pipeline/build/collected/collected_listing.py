"""CollectedListing: the listing of a source as it is stored, compared with what was read and dropped, without its archive.

What that leaves open: the line of a file, and the top folder of an archive, if all say the same; the id of what was dropped; and
whether a dropped file that is excluded, or withdrawn, was a link.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote, unquote_to_bytes

from pipeline.build.oracles.audited_files import IRREGULAR, line_of_drop
from pipeline.core.change_text import is_change_path
from pipeline.core.table_names import DROPPED, FILES, LISTED
from pipeline.pins.local_tree import encoded_name
from pipeline.store.objects import StoredObject

ListedRow = Mapping[str, Any]
_SHA1_DIGITS = 40
_LINE = re.compile(r"line [1-9][0-9]*")
_SIDECAR = ".license"
_MAY_BE_IRREGULAR = IRREGULAR | {"excluded", "withdrawn"}
"""Reasons of drops that may be of no regular file."""
_WITH_MEMBERS = ("archive", "sdist")
"""Kinds whose listings say which member holds each file."""


class ListingFlaw(NamedTuple):
    """An entry of a listing, what was found of it, and what was expected."""

    path: str
    found: str
    expected: str


def listing_flaws(listing: StoredObject, read: StoredObject) -> Iterator[ListingFlaw]:
    """Yield what a listing says otherwise than the tables of the part that was read."""
    rows = listing.table(LISTED).to_pylist()
    source = read.manifest.identity["name"]
    yield from (ListingFlaw(row["path"], "is of another source", source) for row in rows if row["source"] != source)
    files = read.table(FILES, ["path", "git_blob_id", "num_bytes"]).to_pylist()
    drops = read.table(DROPPED, ["path", "num_bytes", "reason", "detail"]).to_pylist()
    for each in (*files, *drops):
        each["path"] = encoded_name(each["path"])
    has_ids = _has_ids(listing.identity)
    for row in rows:
        if (row["git_blob_id"] is not None) != (row["num_bytes"] is not None and has_ids):
            yield ListingFlaw(row["path"], "has an id or a size alone", "both, or none of what is no regular file")
    if listing.identity["kind"] == "jsonl":
        yield from _flaws_of_lines(rows, files, drops)
    else:
        yield from _flaws_of_names(rows, listing.identity)
        yield from _flaws_of_contents(rows, files, drops, listing.identity)


def _has_ids(identity: ListedRow) -> bool:
    """Return whether the listing of a source has ids of contents: those of 64 digits are not listed."""
    return identity["kind"] != "git" or len(identity["revision"]) <= _SHA1_DIGITS


def _flaws_of_names(rows: Iterable[ListedRow], identity: ListedRow) -> Iterator[ListingFlaw]:
    """Yield the entries that have another name, or none, beside that of their file: only lines of JSON do."""
    tops = set[bytes]()
    for row in rows:
        top = _top_of(row, identity["kind"])
        tops |= {top} if top else set()
        if row["other_path"] is not None or row["is_optional"] or top is None or len(tops) > 1:
            yield ListingFlaw(row["path"], "has another name in what was collected", "the member below one folder")


def _top_of(row: ListedRow, kind: str) -> bytes | None:
    """Return the folder of an archive that the path of a file leaves out; None for a member that is not that of its path."""
    if (row["member"] is not None) != (kind in _WITH_MEMBERS):
        return None
    if row["member"] is None:
        return b""
    path, member = unquote_to_bytes(row["path"]), unquote_to_bytes(row["member"])
    name = b"/".join(part for part in member.split(b"/") if part not in (b"", b"."))
    top, _, below = name.partition(b"/")
    return b"./" if path == name else top if path == below else None


def _flaws_of_contents(
    rows: Iterable[ListedRow], files: Sequence[ListedRow], drops: Iterable[ListedRow], identity: ListedRow
) -> Iterator[ListingFlaw]:
    """Yield the entries of other ids or sizes than the file of their path, or its drops, have."""
    has_history = identity["kind"] == "git" and identity.get("history")
    has_ids = _has_ids(identity)
    read = {each["path"]: (each["git_blob_id"] if has_ids else None, each["num_bytes"]) for each in files}
    by_path: dict[str, list[ListedRow]] = {}
    for each in drops:
        by_path.setdefault(each["path"], []).append(each)
    listed: dict[str, list[ListedRow]] = {}
    for row in rows:
        is_change = has_history and row["num_bytes"] is None and is_change_path(unquote(row["path"]))
        if not is_change:  # a listing has no contents of these
            listed.setdefault(row["path"], []).append(row)
    for path, entries in sorted(listed.items()):
        left = list(entries)
        if path in read:
            left = [row for row in entries if (row["git_blob_id"], row["num_bytes"]) != read[path]]
        if len(left) != len(entries) - (path in read) or not _may_be(left, by_path.get(path, [])):
            yield ListingFlaw(path, "differs from the file", "that of the file that was read or dropped")


def _may_be(entries: Sequence[ListedRow], drops: Sequence[ListedRow]) -> bool:
    """Return whether entries of one path may be what was dropped: each size once, and none of what is no regular file."""
    sizes = Counter(row["num_bytes"] for row in entries)
    num_irregular = sizes.pop(None, 0)
    regular = Counter(each["num_bytes"] for each in drops if each["reason"] not in IRREGULAR)
    num_certain = sum(each["reason"] in IRREGULAR for each in drops)
    num_possible = sum(each["reason"] in _MAY_BE_IRREGULAR for each in drops)
    is_each_one = len(entries) == len(drops) and num_certain <= num_irregular <= num_possible
    return is_each_one and sizes <= regular


class _ReadLines:
    """Lines of JSON as they were read, from which the entries of the listing are taken one by one."""

    def __init__(self, files: Iterable[ListedRow], drops: Iterable[ListedRow]) -> None:
        drops = list(drops)
        self.files = {each["path"]: (each["git_blob_id"], each["num_bytes"]) for each in files}
        self.numbered = {number: each for each in drops if (number := line_of_drop(each["detail"]))}
        self.withdrawn = Counter(
            (each["path"], each["num_bytes"]) for each in drops if not line_of_drop(each["detail"])
        )
        self.listed: dict[str, ListedRow] = {}
        self.licensed: set[str] = set()

    def is_bad(self, number: str) -> bool:
        """Return whether a line was dropped whole."""
        return number in self.numbered and self.numbered[number]["path"] == encoded_name(number)

    def take(self, row: ListedRow) -> bool:
        """Take what an entry with a number is the line of. Return whether there was such."""
        number, path = row["other_path"], row["path"]
        if number in self.listed or unquote(row["member"] or "") != number or not _LINE.fullmatch(number):
            return False
        self.listed[number] = row
        if self.is_bad(number):
            return True
        if number in self.numbered:
            drop = self.numbered[number]
            return bool((drop["path"], drop["num_bytes"]) == (path, row["num_bytes"]))
        if path in self.files:
            return self.files.pop(path) == (row["git_blob_id"], row["num_bytes"])
        return self._take_withdrawn(path, row["num_bytes"])

    def take_sidecar(self, row: ListedRow) -> bool:
        """Take the license that a line may have named. Return whether its line is listed, and its file there unless dropped."""
        number, path = unquote(row["member"] or ""), row["path"]
        line = self.listed.get(number)
        has_content = (row["git_blob_id"], row["num_bytes"], row["other_path"]) != (None, None, None)
        if has_content or line is None or line["path"] + _SIDECAR != path or number in self.licensed:
            return False
        self.licensed.add(number)
        if number in self.numbered:
            return True
        return self.files.pop(path, None) is not None or any(name in (path, line["path"]) for name, _ in self.withdrawn)

    def take_bad(self, row: ListedRow) -> bool:
        """Take a line that no reader understands. Return whether it was dropped whole."""
        number = unquote(row["path"])
        is_new = number not in self.listed and bool(_LINE.fullmatch(number))
        self.listed[number] = row
        return is_new and row["member"] is None and row["num_bytes"] is None and self.is_bad(number)

    def _take_withdrawn(self, path: str, num_bytes: int | None) -> bool:
        is_there = num_bytes is not None and self.withdrawn[path, num_bytes] > 0
        self.withdrawn[path, num_bytes or 0] -= is_there
        return is_there


def _flaws_of_lines(
    rows: Sequence[ListedRow], files: Iterable[ListedRow], drops: Iterable[ListedRow]
) -> Iterator[ListingFlaw]:
    """Yield the entries of lines that were not read or dropped so, and the files and drops that no line is listed of."""
    lines = _ReadLines(files, drops)
    kinds = (
        (lines.take, lambda row: row["other_path"] is not None and not row["is_optional"]),
        (lines.take_bad, lambda row: row["other_path"] is None and not row["is_optional"]),
        (lines.take_sidecar, lambda row: row["is_optional"]),
    )
    for take, is_of_kind in kinds:
        for row in filter(is_of_kind, rows):
            if not take(row):
                yield ListingFlaw(row["path"], "differs from the file", "that of a line that was read or dropped")
    missing = [*lines.files, *(number for number in lines.numbered if number not in lines.listed)]
    yield from (ListingFlaw(name, "is missing", "an entry of each line") for name in missing)
