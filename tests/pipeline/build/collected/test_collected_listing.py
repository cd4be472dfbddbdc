"""A listing that is forged is seen without the archive, as far as what was read and dropped contradicts it."""

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.collected.collected_listing import listing_flaws
from pipeline.build.stage_objects import evidence_of, parts_of
from pipeline.core.table_names import DROPPED, FILES, LISTED
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store
from pipeline.store.store_layout import MANIFEST
from tests.pipeline.build.collected.test_collected_sources import collected_by
from tests.support.made.made_archives import entry, tar_bytes
from tests.support.made.made_to_fit import edit_table

Rows = list[dict[str, Any]]
Change = Callable[[dict[str, Rows]], None]


def _code(number: int) -> str:
    return f"int value_{number};\n"


LINES: list[Any] = [
    {"path": "a.c", "license": "MIT", "text": _code(1)},
    {"path": "b.c", "license": "MIT"},  # without a text: a bad line
    {"path": "b.c", "text": _code(22)},
    {"path": "x/c.c", "license": "MIT", "text": _code(333)},  # excluded
    {"path": "x/c.c.license", "text": "SPDX-License-Identifier: MIT\n"},
    7,
    {"path": "line 6", "text": "of another language"},
    {"path": "d.py", "text": "d = 4444"},
    {"path": "x/c.c", "text": _code(55555)},
]
MEMBERS = [
    entry("top/a.c", b"int a;\n"),
    entry("top/x/c.c", b"1"),
    entry("top/./x/c.c", b"22"),
    entry("top/x/c.c", b"22"),
    entry("top/d.py", b"d = 4"),
    entry("top/link.c", kind=tarfile.SYMTYPE, target="a.c"),
]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, StoredObject]:
    """A store, and the stage collect of lines of JSON in it."""
    root = tmp_path_factory.mktemp("lines")
    (root / "code.jsonl").write_text("\n".join(map(json.dumps, LINES)))
    more = 'kind = "jsonl"\nlicense_field = "license"\nexclude = ["x/c.c"]\n'
    store = Store(root / "store")
    return store, collected_by(store, root / "code.jsonl", more)[0]


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, StoredObject]:
    """A store, and the stage collect of an archive in it."""
    root = tmp_path_factory.mktemp("members")
    (root / "code.tar").write_bytes(tar_bytes(*MEMBERS))
    store = Store(root / "store")
    return store, collected_by(store, root / "code.tar", 'kind = "archive"\nexclude = ["x/**"]\n')[0]


def _flaws_after(change: Change, store: Store, stage: StoredObject, folder: Path) -> set[str]:
    """Return the paths of the flaws of a listing whose rows are changed, by path."""
    listing, read = store.read(evidence_of(stage)["code.listing"]), store.read(parts_of(stage)["code"])
    copytree(listing.path, folder / "listing", ignore=ignore_patterns(MANIFEST))

    def changed(table: pa.Table) -> pa.Table:
        by_path: dict[str, Rows] = {}
        for row in table.to_pylist():
            by_path.setdefault(row["path"], []).append(row)
        change(by_path)
        return pa.Table.from_pylist([row for rows in by_path.values() for row in rows], table.schema)

    edit_table(changed)(folder / "listing" / LISTED)
    forged = store.commit(folder / "listing", listing.kind, listing.identity, listing.manifest.inputs)
    return {flaw.path for flaw in listing_flaws(store.read(forged), read)}


def _set(listed: str, number: int = 0, /, **values: Any) -> Change:
    return lambda by_path: by_path[listed][number].update(values)


def _add(path: str, like: str, **values: Any) -> Change:
    return lambda by_path: by_path.setdefault(path, []).append({**by_path[like][0], "path": path, **values})


def _of_line(number: int) -> dict[str, str]:
    return {"other_path": f"line {number}", "member": f"line%20{number}"}


FORGED_LINES: dict[str, tuple[Change, str]] = {
    "file in a bad line": (_set("b.c", 1, **_of_line(6)), "b.c"),
    "file in the line of another": (_set("b.c", 1, **_of_line(1)), "b.c"),
    "line 0": (_set("a.c", **_of_line(0)), "a.c"),
    "no line": (_set("a.c", other_path=None, member=None), "a.c"),
    "member of another number": (_set("a.c", member="line%209"), "a.c"),
    "size of a file": (_set("a.c", num_bytes=1), "a.c"),
    "id of a file": (_set("a.c", git_blob_id="0" * 40), "a.c"),
    "size of a drop": (_set("d.py", num_bytes=1), "d.py"),
    "drop without a size": (_set("d.py", num_bytes=None, git_blob_id=None), "d.py"),
    "drop of another path": (_set("d.py", path="e.py"), "e.py"),
    "drop without an id": (_set("d.py", git_blob_id=None), "d.py"),
    "bad line with an id": (_set("line%206", git_blob_id="0" * 40), "line%206"),
    "license twice of a line": (_add("a.c.license", "a.c.license"), "a.c.license"),
    "bad line that was none": (_set("line%206", path="line%208"), "line%208"),
    "license of another line": (_set("a.c.license", member="line%203"), "a.c.license"),
    "license of no line": (_set("a.c.license", member="line%2099"), "a.c.license"),
    "license of no file": (_add("d.py.license", "a.c.license", member="line%203"), "d.py.license"),
    "license with a content": (_set("a.c.license", num_bytes=1), "a.c.license"),
    "file that need not be": (
        _set("x/c.c.license", 1, other_path=None, git_blob_id=None, num_bytes=None, is_optional=True),
        "x/c.c.license",
    ),
    "file without an entry": (lambda by_path: by_path.pop("a.c").clear(), "a.c.license"),
    "drop without an entry": (lambda by_path: by_path.pop("d.py").clear(), "line 8"),
}
FORGED_MEMBERS: dict[str, tuple[Change, str]] = {
    "drop without a size": (_set("d.py", num_bytes=None, git_blob_id=None), "d.py"),
    "drop without an id": (_set("d.py", git_blob_id=None), "d.py"),
    "link of a size": (_set("link.c", num_bytes=3, git_blob_id="0" * 40), "link.c"),
    "excluded doubles of one size": (_set("x/c.c", num_bytes=22), "x/c.c"),
    "excluded double left out": (lambda by_path: by_path["x/c.c"].pop().clear(), "x/c.c"),
    "file twice": (_add("a.c", "a.c"), "a.c"),
    "file without a size": (_set("a.c", num_bytes=None, git_blob_id=None), "a.c"),
    "no member": (_set("a.c", member=None), "a.c"),
    "member below another folder": (_set("d.py", member="other/d.py"), "d.py"),
    "other source": (_set("a.c", source="other"), "a.c"),
}


def test_what_was_listed_has_no_flaw(
    lines: tuple[Store, StoredObject], members: tuple[Store, StoredObject], tmp_path: Path
) -> None:
    files, dropped = (lines[0].read(parts_of(lines[1])["code"]).table(name) for name in (FILES, DROPPED))

    assert files["path"].to_pylist() == ["a.c", "a.c.license", "b.c", "x/c.c.license"]
    assert sorted(dropped["path"].to_pylist()) == ["d.py", "line 2", "line 6", "line 6", "x/c.c", "x/c.c"]
    assert _flaws_after(lambda by_path: None, *lines, tmp_path / "lines") == set()
    assert _flaws_after(lambda by_path: None, *members, tmp_path / "members") == set()


@pytest.mark.parametrize("name", FORGED_LINES)
def test_a_forged_line_is_seen(lines: tuple[Store, StoredObject], tmp_path: Path, name: str) -> None:
    change, path = FORGED_LINES[name]

    assert path in _flaws_after(change, *lines, tmp_path)


@pytest.mark.parametrize("name", FORGED_MEMBERS)
def test_a_forged_member_is_seen(members: tuple[Store, StoredObject], tmp_path: Path, name: str) -> None:
    change, path = FORGED_MEMBERS[name]

    assert path in _flaws_after(change, *members, tmp_path)
