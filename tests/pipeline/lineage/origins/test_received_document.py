"""The member that holds a file is named as its archive has it; bytes that are gone are said, and all else is answered."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline.build.withdrawal import withdraw
from pipeline.cli.main import main
from pipeline.core.errors import DamagedError
from pipeline.core.table_names import DOCUMENTS
from pipeline.formats.tables import find_rows
from pipeline.lineage.origins.received_document import only_row, received_document
from pipeline.lineage.origins.token_places import row_name
from pipeline.lineage.origins.which import TokenOrigin, TokenOrigins
from pipeline.lineage.stored_build import StoredBuild, stored_build
from pipeline.store.store import Store
from tests.support.made.made_archives import entry, tar_bytes


def _origin(build: StoredBuild, row: str, slot: int) -> TokenOrigin:
    return TokenOrigins(build).of(row_name(row), slot)


def test_withdrawn_and_removed_bytes_are_said(tiny_store: Store, tmp_path: Path) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "store")
    store = Store(tmp_path / "store")
    build = stored_build(store, "tiny")
    before = _origin(build, "lantern/train/3", 17)
    withdraw(store, f"sha256:{before.document['blob_sha256']}", "its owner asked")
    shutil.rmtree(build.part("collect", "lantern").path)

    found = _origin(stored_build(store, "tiny"), "lantern/train/3", 17)

    assert (found.start, found.end, found.archive["member"]) == (None, None, None)
    assert "the collected bytes are not in the store any more" in found.missing
    (withdrawn,) = found.withdrawn
    assert withdrawn.startswith(f"by sha256:{before.document['blob_sha256']} on 2")
    assert withdrawn.endswith(": its owner asked")
    assert (found.text_start, found.license) == (before.text_start, before.license)


def test_a_row_that_is_not_one_is_damage(tiny_store: Store) -> None:
    part = stored_build(tiny_store, "tiny").part("normalize", "lantern")

    with pytest.raises(DamagedError, match="0 of its rows have path nowhere; expected one"):
        only_row(part, DOCUMENTS, "path", "nowhere")


def test_a_file_is_named_as_the_archive_or_the_lines_have_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two lines with one path the first that is no drop became the file, though both have its text."""
    tag = "// SPDX-License-" + "Identifier: MIT\n"
    code = {name: tag + "".join(f"int {name}_{n}(int x) {{ return x * {n}; }}\n" for n in range(20)) for name in "abc"}
    lines = [
        {"path": "b.c", "text": code["b"], "license": 5},
        *({"path": f"{n}.c", "text": code[n]} for n in "bab"),
        {"path": "line 3", "text": "x"},
    ]
    (tmp_path / "lines.jsonl").write_text("\n\n".join(map(json.dumps, lines)))
    (tmp_path / "made.tar").write_bytes(tar_bytes(entry("./d-1//src/c.c", code["c"].encode()), entry("d-1/x.py", b"x")))
    pins = ""
    for kind, file, more in (("jsonl", "lines.jsonl", 'license_field = "license"\n'), ("archive", "made.tar", "")):
        sha256 = hashlib.sha256((tmp_path / file).read_bytes()).hexdigest()
        pins += f'[[pin]]\nname = "{kind}"\nkind = "{kind}"\npath = "{file}"\nsha256 = "{sha256}"\ndeclared_license = "MIT"\n{more}'
    (tmp_path / "pins.toml").write_text(pins)
    command = ["build", "--recipe", "tiny", "--corpus", "c", "--pins", str(tmp_path / "pins.toml"), "--workers", "1"]
    assert main([*command, "--until", "normalize", "--quiet", "--store", str(tmp_path / "store")]) == 0, (
        capsys.readouterr()
    )
    build = stored_build(Store(tmp_path / "store"), "c")

    found = {}
    for source in ("archive", "jsonl"):
        for document in build.part("normalize", source).table(DOCUMENTS, ["path", "document_id"]).to_pylist():
            found[document["path"]] = received_document(build, source, document["document_id"])

    members = {path: each.member for path, each in found.items()}
    assert members == {"src/c.c": "./d-1//src/c.c", "a.c": "line 5", "b.c": "line 3"}
    assert [each.missing for each in found.values()] == ["", "", ""]


def test_a_build_whose_listings_know_no_members_says_so(tiny_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def found_before(paths: list[Path], column: str, value: str, columns: list[str]) -> list[dict[str, Any]]:
        return find_rows(paths, column, value, [name for name in columns or () if name != "member"] or None)

    monkeypatch.setattr("pipeline.lineage.origins.received_document.find_rows", found_before)
    origin = _origin(stored_build(tiny_store, "tiny"), "lantern/train/3", 17)

    assert origin.archive["member"] is None
    assert "did not keep the name of its member" in origin.missing
    assert origin.start is not None
