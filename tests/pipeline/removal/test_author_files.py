"""The files that name a person are found as their documents spell it; commits and archives are in `test_erased_archives`."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY
from pipeline.build.run_stage import run_stages
from pipeline.core.digests import file_sha256
from pipeline.removal.author_files import author_files
from pipeline.removal.erasure import erase
from pipeline.stages.collect.kinds.jsonl import JsonlPin
from pipeline.store.store import Store
from tests.pipeline.removal.conftest import FILES_OF, OWN, Collected

ADA = "Ada Example"


def test_a_file_is_found_as_the_document_spells_the_name(tmp_path: Path) -> None:
    names = {"a.c": ("山田太郎", "cp932"), "b.c": ("Иван Петров", "cp1251"), "c.c": ("李明", "gb18030")}
    files = {path: f"/* {name} */\nint x;\n".encode(encoding) for path, (name, encoding) in names.items()}
    store = Collected(tmp_path / "made", {"made": files}).store
    for path, (name, _) in names.items():
        assert author_files(store, name).digests == (hashlib.sha256(files[path]).hexdigest(),)


def _lines(root: Path, *records: Mapping[str, str]) -> Store:
    """Return a store in which a file of JSON lines was collected."""
    store, path = Store(root / "store"), root / "j.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    pin = JsonlPin(name="j", path=path, sha256=file_sha256(path))
    with open_build(BuildRequest("made", TINY.params, (pin,), "a test"), store) as build:
        next(run_stages(build, "collect"))
    return store


@pytest.mark.parametrize(
    ("records", "others"),
    [
        ([{"path": "a.c", "text": f"/* by {ADA} */\n"}, {"path": "b.c", "text": "int b;\n"}], {}),
        ([{"path": "a.c", "text": f'char *a[] = {{\n"{ADA}",\n}};\n'}], {}),
        ([{"path": "a.c", "text": OWN.decode(), "author": ADA, "by": f"{ADA} too"}], {"j": 1}),
        ([{"path": "a.c", "text": OWN.decode()}, {"path": "b.txt", "text": f"Not collected, by {ADA}\n"}], {"j": 1}),
    ],
)
def test_a_file_of_json_lines_is_counted_beside_its_documents_for_what_is_in_none(
    tmp_path: Path, records: list[dict[str, str]], others: dict[str, int]
) -> None:
    store = _lines(tmp_path, *records)
    found = author_files(store, ADA)
    assert (found.by_source, found.others, len(found.digests)) == ({"j": 1}, others, 1)
    receipt = erase(store, [f"sha256:{digest}" for digest in found.digests], "asked", found.archives)[1]
    assert (len(receipt.blobs), list((store.root / "blobs").iterdir())) == (1, [])


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ((f'char *authors[] = {{\n"{ADA}",\n"{ADA}, twice"}};\n', "a.c"), {}),
        ((f'{{\n"author": "{ADA}",\n"maintainer": "{ADA}, who else"\n}}\n', "package.json"), {"made": 1}),
    ],
)
def test_a_file_of_an_archive_is_counted_once_whatever_its_lines_hold(
    tmp_path: Path, text: tuple[str, str], others: dict[str, int]
) -> None:
    content, name = text
    store = Collected(tmp_path / "made", {"made": {"b.c": b"int b;\n", name: content.encode()}}).store
    found = author_files(store, ADA)
    assert (found.num_files, found.others) == (int(name == "a.c"), others)


def test_what_is_no_archive_of_a_source_is_called_what_it_is(tmp_path: Path) -> None:
    store = Collected(tmp_path / "made", FILES_OF).store
    items = json.dumps({"prompt": f"By {ADA}", "solution": OWN.decode()}).encode() + b"\n"
    only_copy = json.dumps({"prompt": "Write it.", "solution": OWN.decode()}).encode()
    loose, packed = io.BytesIO(f"loose, by {ADA}".encode()), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        info = tarfile.TarInfo("x.txt")
        info.size = len(loose.getvalue())
        tar.addfile(info, loose)
    blobs = {
        "evaluation items": (items, only_copy),
        "file": (loose.getvalue(),),
        "archive": (packed.getvalue(),),
    }
    expected: dict[str, int] = {}
    for what, contents in blobs.items():
        for content in contents:
            digest = hashlib.sha256(content).hexdigest()
            store.put_blob([content], digest, "a test")
            if what == "evaluation items":
                store.name_blob(f"evaluation/{digest}", digest)
            expected[f"{what} {digest[:12]}"] = 1
    assert author_files(store, ADA).others == expected
