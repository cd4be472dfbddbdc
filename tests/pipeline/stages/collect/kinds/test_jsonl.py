"""Sources of kind jsonl: one file for each line, and the lines and files that are refused."""

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from pipeline.build.stage_objects import parts_of
from pipeline.cli.main import main
from pipeline.core.errors import ArchiveError, DigestError, SourceError
from pipeline.pins.pins import pin_toml
from pipeline.stages.collect.contents import ReadOptions, SourceContents
from pipeline.stages.collect.kinds.jsonl import JsonlPin, read_lines
from pipeline.stages.collect.params import CollectParams, RetryPolicy
from pipeline.stages.collect.propose_pin import propose_local
from pipeline.stages.collect.stage import run
from pipeline.store.store import Store
from tests.pipeline.stages.collect.conftest import Create, Index

TAG = "SPDX-License-" + "Identifier: "


def line(path: object = "a.c", text: object = "int a;\n", **more: object) -> bytes:
    return json.dumps({"path": path, "text": text, **more}).encode() + b"\n"


def read(
    folder: Path, content: bytes, limits: CollectParams | None = None, license: str | None = None
) -> SourceContents:
    place = folder / "lines"
    place.write_bytes(content)
    pin = {"text_field": "text", "path_field": "path", "license_field": license}
    return read_lines(place, pin, ReadOptions("demo", limits=limits or CollectParams()))


def test_each_line_is_a_file_whatever_its_number(tmp_path: Path) -> None:
    contents = read(tmp_path, line("src/b.cpp", "int b = 'ä';\n") + b"\n" + line("a.h", "") + line("x.py"))
    assert [(file.path, file.content) for file in contents.files] == [
        ("a.h", b""),
        ("src/b.cpp", "int b = 'ä';\n".encode()),
    ]
    assert [(drop.path, drop.reason, drop.detail) for drop in contents.skipped] == [
        ("x.py", "other_language", "line 4")
    ]


def test_a_license_becomes_the_sidecar_of_its_file(tmp_path: Path) -> None:
    content = line("a.c", license="MIT OR Apache-2.0") + line("b.c", license=None) + line("c.c")
    contents = read(tmp_path, content, license="license")
    assert [file.path for file in contents.files] == ["a.c", "a.c.license", "b.c", "c.c"]
    assert contents.files[1].content == (TAG + "MIT OR Apache-2.0\n").encode()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"{nonsense\n", "it is not JSON"),
        (b"[" * 100_000 + b"\n", "it is nested deeper than 100"),
        (b'{"path": "a.c", "text": "", "n": ' + b"[" * 101 + b"]" * 101 + b"}\n", "it is nested deeper than 100"),
        (b'{"path": "a.c", "text": "", "n": NaN}\n', "NaN is not a number of JSON"),
        (b"[1]\n", "it is of type list, not an object"),
        (b'{"path": "caf\xe9.c", "text": ""}\n', "it is not UTF-8 at byte 13"),
        (b'{"text": ""}\n', "`path` is missing"),
        (b'{"path": "b.c"}\n', "`text` is missing"),
        (line("b.c", 3), "`text` is of type int"),
        (line("b.c", None), "`text` is of type NoneType"),
        (line("b.c", "\ud800"), "`text` holds half of a surrogate pair at 0"),
        (line("/etc/b.c"), "has an absolute path"),
        (line("C:\\b.c"), "has an absolute path"),
        (line("d/../../b.c"), "leaves the archive through `..`"),
        (line("./."), "is a file with the name of a folder"),
        (line("b.c/"), "is a file with the name of a folder"),
        (line("d\\b.c"), "holds a backslash, which some readers take for a slash"),
        (line("d/.git/b.c"), "is within `.git`"),
        (b'{"path": "b.c", "path": "c.c", "text": ""}\n', "an object has a name twice"),
        (line(""), "has no name"),
        (line("b\0.c"), "has a NUL"),
        (line("d/" * 80 + "b.c"), "is 80 folders deep"),
        (line("a.c"), "'a.c' and 'a.c' collide"),
        (line("A.c"), "'A.c' and 'a.c' collide"),
        (line("a.c/b.c"), "'a.c/b.c' is below 'a.c', which is not a folder"),
        (line("a.c.license"), "'a.c.license' and 'a.c.license' collide"),
        (line("b.c", license="MIT\nOR else"), "not a license expression"),
        (line("b.c", license=["MIT"]), "`license` is of type list"),
    ],
)
def test_a_line_that_makes_no_sense_is_a_drop_with_its_number(tmp_path: Path, bad: bytes, message: str) -> None:
    contents = read(tmp_path, line("a.c", license="MIT") + b"\n" + bad + line("z.c"), license="license")
    assert [file.path for file in contents.files] == ["a.c", "a.c.license", "z.c"]
    (drop,) = contents.skipped
    assert (drop.path, drop.reason, drop.num_bytes) == ("line 3", "bad_line", len(bad))
    assert drop.detail.startswith("line 3: ")
    assert message in drop.detail


def test_a_path_is_written_in_one_way_whatever_the_kind_of_source(tmp_path: Path) -> None:
    assert [file.path for file in read(tmp_path, line("./d//b.c")).files] == ["d/b.c"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xef\xbb\xbf" + line(), "begins with a byte-order mark"),
        (line().decode().encode("utf-16"), "is in UTF-16 or UTF-32"),
        (line().decode().encode("utf-16-le"), "is in UTF-16 or UTF-32"),
        (line().decode().encode("utf-32-be"), "is in UTF-16 or UTF-32"),
        (gzip.compress(line(), mtime=0), "is compressed with gzip"),
        (b"\n [" + line().strip() + b"]\n", "is a JSON array"),
    ],
)
def test_what_holds_no_json_lines_is_refused_by_what_it_is(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ArchiveError, match=message) as caught:
        read(tmp_path, content)
    assert "one JSON object a line" in caught.value.remedy


def test_a_line_without_an_end_is_not_taken_into_memory(tmp_path: Path) -> None:
    limits = CollectParams(max_file_bytes=1000)
    contents = read(tmp_path, line("a.c") + line("b.c", "x" * 200_000) + line("c.c", "x" * 1001) + line("d.c"), limits)
    assert [file.path for file in contents.files] == ["a.c", "d.c"]
    assert [(drop.path, drop.reason) for drop in contents.skipped] == [("c.c", "too_large"), ("line 2", "bad_line")]
    assert max(drop.num_bytes for drop in contents.skipped) < 80_000


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_members": 2}, "has more lines than 2"),
        ({"max_total_bytes": 1024}, "has 2850 bytes; expected at most 1024"),
    ],
)
def test_a_file_over_the_limits_is_refused(tmp_path: Path, limits: dict[str, int], message: str) -> None:
    with pytest.raises(ArchiveError, match=message):
        read(tmp_path, b"".join(line(f"{number:03}.c") for number in range(75)), CollectParams(**limits))


def test_lines_are_a_source_like_any_other(surroundings: Create, index: "Index", retry: RetryPolicy) -> None:
    content = line("a.c") + b"nonsense\n"
    sha256 = index.add("lines.jsonl", content)
    url = f"{index.address}/files/lines.jsonl"
    context = surroundings(JsonlPin(name="demo", url=url, sha256=sha256, declared_license="MIT"))
    output = run(context, retry)
    assert output.failures == {}
    (row,) = context.made["demo"].tables["files.parquet"].to_pylist()
    assert (row["path"], row["revision"], row["content"]) == ("a.c", sha256, b"int a;\n")
    assert (output.report.rows_in, dict(output.report.dropped)) == (2, {"bad_line": 1})


def test_the_license_of_a_line_is_that_of_its_document(tmp_path: Path) -> None:
    code = "".join(f"int f{number}(int a) {{ return a * {number} + {number % 7}; }}\n" for number in range(60))
    content = line("a.c", code, license="MIT") + line("b.c", code.replace("f", "g"), license="LicenseRef-Closed")
    (tmp_path / "lines.jsonl").write_bytes(content)
    pin = pin_toml(propose_local("demo", tmp_path / "lines.jsonl", "NOASSERTION")) + '\nlicense_field = "license"\n'
    (tmp_path / "pins.toml").write_text(pin)
    command = ["build", "--recipe", "tiny", "--corpus", "mine", "--pins", str(tmp_path / "pins.toml"), "--workers", "1"]
    assert main([*command, "--until", "normalize", "--store", str(tmp_path / "store")]) == 0
    store = Store(tmp_path / "store")
    rules = store.read(parts_of(store.read(store.ref("mine", "normalize") or ""))["demo"])
    columns = ["path", "license"]
    assert rules.table("documents.parquet", columns).to_pylist() == [{"path": "a.c", "license": "MIT"}]
    assert rules.table("dropped.parquet", columns).to_pylist() == [{"path": "b.c", "license": "LicenseRef-Closed"}]


def test_lines_at_a_path_are_judged_by_their_digest(surroundings: Create, tmp_path: Path) -> None:
    place = tmp_path / "lines.jsonl"
    place.write_bytes(line())
    sha256 = hashlib.sha256(line()).hexdigest()
    context = surroundings(
        JsonlPin(name="good", path=place, sha256=sha256),
        JsonlPin(name="other", path=place, sha256="0" * 64),
        JsonlPin(name="absent", path=tmp_path / "none", sha256="1" * 64),
    )
    output = run(context)
    assert set(output.parts) == {"good"}
    assert {name: type(error) for name, error in output.failures.items()} == {
        "other": DigestError,
        "absent": SourceError,
    }
