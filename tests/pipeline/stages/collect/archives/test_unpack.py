"""Unpacking: each member is read or skipped with its reason, and the paths and links that are refused."""

import tarfile
from pathlib import Path

import pytest

from pipeline.pins.local_tree import printable_path
from pipeline.pins.selection import Selection
from pipeline.stages.collect.params import CollectParams
from tests.support.made.made_archives import entry, read, refusal, tar_bytes, zip_bytes


def test_every_file_and_link_is_either_read_or_skipped_with_its_reason(tmp_path: Path) -> None:
    entries = [
        entry("d", kind=tarfile.DIRTYPE),
        entry("d/a.cpp", b"int a;"),
        entry("d/PKG-INFO", b"License-Expression: MIT\n"),
        entry("d/setup.py", b"raise SystemExit"),
        entry("d/big.cpp", b"x" * 2000),
        entry("d/doc/b.cpp", b"int b;"),
        entry("d/soft.h", kind=tarfile.SYMTYPE, target="a.cpp"),
        entry("d/hard.h", kind=tarfile.LNKTYPE, target="d/a.cpp"),
    ]
    limits = CollectParams(max_file_bytes=1000)
    contents = read(tmp_path, tar_bytes(*entries), limits, Selection(exclude=("doc/**",)))
    assert [file.path for file in contents.files] == ["PKG-INFO", "a.cpp"]
    assert [(drop.path, drop.reason) for drop in contents.skipped] == [
        ("big.cpp", "too_large"),
        ("doc/b.cpp", "excluded"),
        ("hard.h", "link"),
        ("setup.py", "other_language"),
        ("soft.h", "link"),
    ]


def test_include_narrows_source_files_and_keeps_license_evidence(tmp_path: Path) -> None:
    entries = [
        entry("d/src/a.cpp", b"1"),
        entry("d/src/x/b.cpp", b"2"),
        entry("d/c.cpp", b"3"),
        entry("d/LICENSE", b"M"),
    ]
    contents = read(tmp_path, tar_bytes(*entries), selection=Selection(include=("src/**",)))
    assert [file.path for file in contents.files] == ["LICENSE", "src/a.cpp", "src/x/b.cpp"]


def test_paths_stay_whole_where_there_is_no_single_top_folder(tmp_path: Path) -> None:
    contents = read(tmp_path, tar_bytes(entry("./src/a.cpp", b"1"), entry("include//a.h", b"2")))
    assert [file.path for file in contents.files] == ["include/a.h", "src/a.cpp"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("../x.cpp", "leaves the archive through `..`"),
        ("d/../../x.cpp", "leaves the archive through `..`"),
        ("/etc/x.cpp", "has an absolute path"),
        ("C:/x.cpp", "has an absolute path"),
        ("C:x.cpp", "has an absolute path"),
        ("d\\..\\..\\x.cpp", "leaves the archive through `..`"),
        ("\\\\server\\x.cpp", "has an absolute path"),
        ("d/" * 2000 + "x.cpp", "its path has 4005 bytes; expected at most 1024"),
        ("d/" * 80 + "x.cpp", "is 80 folders deep; expected at most 64"),
    ],
)
def test_a_path_that_leaves_the_archive_or_is_endless_is_refused_by_name(
    tmp_path: Path, name: str, expected: str
) -> None:
    message = refusal(tmp_path, tar_bytes(entry("d/ok.cpp", b"1"), entry(name, b"2")))
    assert expected in message
    assert message.startswith(f"demo: {printable_path(name)[:200]!r}")


def test_the_same_names_are_refused_in_a_zip(tmp_path: Path) -> None:
    assert "leaves the archive" in refusal(tmp_path, zip_bytes({"../x.cpp": b""}))
    assert "absolute path" in refusal(tmp_path, zip_bytes({"/x.cpp": b""}))
    assert "NUL" in refusal(tmp_path, zip_bytes({"d/x.cpp": b"", "d/y.cpp_.h": b""}).replace(b"cpp_", b"cpp\0"))


@pytest.mark.parametrize(
    ("kind", "target", "expected"),
    [
        (tarfile.SYMTYPE, "../../etc/passwd", "is a link to '../../etc/passwd'"),
        (tarfile.SYMTYPE, "/etc/passwd", "is a link to '/etc/passwd'"),
        (tarfile.SYMTYPE, "a/../../../x", "is a link to"),
        (tarfile.LNKTYPE, "../x", "is a hard link to '../x'"),
        (tarfile.LNKTYPE, "/etc/passwd", "is a hard link to '/etc/passwd'"),
    ],
)
def test_a_link_out_of_the_archive_is_refused(tmp_path: Path, kind: bytes, target: str, expected: str) -> None:
    message = refusal(tmp_path, tar_bytes(entry("d/link.h", kind=kind, target=target)))
    assert expected in message
    assert "demo: 'd/link.h'" in message


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (tarfile.CHRTYPE, "is a device"),
        (tarfile.BLKTYPE, "is a device"),
        (tarfile.FIFOTYPE, "is a FIFO"),
        (b"V", "member of"),
    ],
)
def test_what_is_neither_file_folder_nor_link_is_refused(tmp_path: Path, kind: bytes, expected: str) -> None:
    message = refusal(tmp_path, tar_bytes(entry("d/x.cpp", kind=kind)))
    assert expected in message
    assert "demo: 'd/x.cpp'" in message


@pytest.mark.parametrize(
    ("one", "other"),
    [("d/a.cpp", "d/a.cpp"), ("d/A.cpp", "d/a.cpp"), ("d/\u00e9.h", "d/e\u0301.h"), ("d/x.h", "./d//x.h")],
)
def test_paths_that_are_the_same_on_some_system_are_refused_and_both_named(
    tmp_path: Path, one: str, other: str
) -> None:
    message = refusal(tmp_path, tar_bytes(entry(one, b"1"), entry(other, b"2")))
    assert "collide" in message
    assert message.count(".cpp") + message.count(".h") == 2
    assert message == refusal(tmp_path, tar_bytes(entry(other, b"2"), entry(one, b"1")))


def test_a_file_below_a_link_or_a_file_is_refused(tmp_path: Path) -> None:
    for kind in (tarfile.SYMTYPE, tarfile.REGTYPE):
        message = refusal(tmp_path, tar_bytes(entry("d/l", kind=kind, target="x"), entry("d/l/a.cpp", b"1")))
        assert "'d/l/a.cpp' is below 'd/l', which is not a folder" in message


def test_more_members_than_allowed_are_refused(tmp_path: Path) -> None:
    many = tar_bytes(*(entry(f"d/{number}.h") for number in range(20)))
    assert "more members than 10" in refusal(tmp_path, many, CollectParams(max_members=10))


def test_a_name_that_is_not_utf_8_is_kept_so_that_it_can_be_printed_and_undone(tmp_path: Path) -> None:
    name = b"d/caf\xe9.cpp".decode("utf-8", "surrogateescape")
    contents = read(tmp_path, tar_bytes(entry(name, b"1"), entry("d/plain.cpp", b"2")))
    assert [file.path for file in contents.files] == ["caf\\xe9.cpp", "plain.cpp"]


def test_an_encrypted_file_is_refused_as_one(tmp_path: Path) -> None:
    archive = bytearray(zip_bytes({"a.c": b"int a;"}))
    archive[6] |= 1
    archive[archive.index(b"PK\x01\x02") + 8] |= 1
    assert "'a.c': is an encrypted file; expected" in refusal(tmp_path, bytes(archive))
