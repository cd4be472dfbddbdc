"""Every file, commit and string of a blob is read, whatever a pin would select, and what cannot be read to its end is refused."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import subprocess
import zipfile
import zlib
from itertools import starmap
from pathlib import Path

import pytest

from pipeline.core.digests import text_sha256
from pipeline.core.errors import ArchiveError
from pipeline.removal.received_contents import ReceivedContent, received_contents
from tests.support import git_repository as made
from tests.support.made.made_archives import entry, tar_bytes, zip_bytes

OLD, NEW = b"int old_one;\n", b"int new_one;\n"


def _pack(folder: Path, hash_name: str = "sha1", depth: int | None = None) -> Path:
    """Make a pack of two commits of one file, or of the last alone."""
    repository = made.create(folder / "repository", hash_name)
    repository.commit("The first", src__c=OLD.decode())
    repository.commit("The\n second\n\nReviewed-by: Ada <ada@host.org>", src__c=NEW.decode())
    cloned = folder / "cloned.git"
    limit = [] if depth is None else [f"--depth={depth}"]
    subprocess.run(["git", "clone", "-q", "--bare", *limit, repository.url, str(cloned)], check=True)
    subprocess.run(["git", "repack", "-adq"], cwd=cloned, check=True)
    (pack,) = cloned.glob("objects/pack/*.pack")
    return pack


@pytest.mark.parametrize("hash_name", ["sha1", "sha256"])
@pytest.mark.parametrize("depth", [None, 1])
def test_a_pack_holds_the_files_of_all_its_commits_and_who_made_them(
    tmp_path: Path, hash_name: str, depth: int | None
) -> None:
    pieces = list(received_contents(_pack(tmp_path, hash_name, depth)))
    files = {(each.name, each.content) for each in pieces if not each.is_commit}
    commits = {each.sha256: each for each in pieces if each.is_commit}

    assert files == {("src.c", NEW)} | ({("src.c", OLD)} if depth is None else set())
    assert commits.keys() == {text_sha256("The second")} | ({text_sha256("The first")} if depth is None else set())
    last = commits[text_sha256("The second")]
    assert [line.split(b" <")[0] for line in last.people.split(b"\n")] == [b"A", b"C"]
    assert b"Reviewed-by: Ada" in last.message
    assert all(each.sha256 == hashlib.sha256(each.content).hexdigest() for each in pieces if not each.is_commit)


def test_archives_and_lines_are_read_whole(tmp_path: Path) -> None:
    (tmp_path / "tar").write_bytes(lzma.compress(tar_bytes(entry("top/a.c", OLD), entry("top/notes", OLD))))
    (tmp_path / "zip").write_bytes(zip_bytes({"b.txt": NEW}))
    (tmp_path / "lines").write_text(json.dumps({"path": "a.c", "deep": [{"text": OLD.decode()}]}) + "\nno JSON\n")

    def read(name: str) -> list[tuple[str, bytes]]:
        return [(each.name, each.content) for each in received_contents(tmp_path / name)]

    assert read("tar") == [("top/a.c", OLD), ("top/notes", OLD)]
    assert read("zip") == [("b.txt", NEW)]
    assert {content for _, content in read("lines")} == {
        *(b"path", b"a.c", b"deep", b"text", OLD),
        (tmp_path / "lines").read_bytes(),
    }


def test_what_is_packed_within_an_archive_is_read_too_and_what_is_broken_there_is_one_piece(tmp_path: Path) -> None:
    zeros = gzip.compress(bytes(2 << 20))
    pack = _pack(tmp_path).read_bytes()
    files = {
        "v.zip": zip_bytes({"b.c": NEW}),
        "a.c.gz": gzip.compress(OLD),
        "inner.tar": tar_bytes(entry("deep.tgz", gzip.compress(tar_bytes(entry("d.c", NEW)))), entry("plain.c", OLD)),
        "objects.pack": pack,
        "v2.bundle": b"# v2 git bundle\n" + b"5" * 40 + b" HEAD\n\n" + pack,
        "rows.JSONL": b"# no JSON\n" + json.dumps({"text": OLD.decode()}).encode() + b"\n",
        "utf-16": json.dumps({"text": NEW.decode()}).encode("utf-16"),
        "rows.jsonl.gz": gzip.compress(json.dumps([OLD.decode()]).encode()),
        "broken.zip": b"PK\x03\x04 cut off",
        "objects/" + _loose(OLD)[0]: _loose(OLD)[1],
        "zeros": bytes(4096),
        "zeros.gz": zeros,
    }
    (tmp_path / "outer").write_bytes(tar_bytes(*starmap(entry, files.items())))
    found = {(each.name, each.content) for each in received_contents(tmp_path / "outer") if not each.is_commit}

    within = {("v.zip/b.c", NEW), ("a.c.gz", OLD), ("inner.tar/deep.tgz/d.c", NEW), ("inner.tar/plain.c", OLD)}
    within |= {
        *(("rows.JSONL", OLD), ("utf-16", NEW), ("rows.jsonl.gz", OLD), ("objects/" + _loose(OLD)[0], OLD)),
        *((f"{name}/src.c", each) for name in ("objects.pack", "v2.bundle") for each in (OLD, NEW)),
    }
    assert within <= found
    assert set(files.items()) <= found
    assert {content for name, content in found if name == "zeros.gz"} == {zeros, bytes(2 << 20)}


@pytest.mark.parametrize("name", ["{{cookiecutter.name}}/a.c", "[a]/a.c", "PACKAGE-1.0/a.c"])
def test_a_tar_is_one_however_its_first_name_begins(tmp_path: Path, name: str) -> None:
    (tmp_path / "tar").write_bytes(tar_bytes(entry(name, OLD)))
    assert [(each.name, each.content) for each in received_contents(tmp_path / "tar")] == [(name, OLD)]


def _loose(content: bytes) -> tuple[str, bytes]:
    """Return the name and the bytes of a file among the objects of git, as git itself stores it alone."""
    stored = b"blob %d\0" % len(content) + content
    name = hashlib.sha1(stored).hexdigest()
    return f"{name[:2]}/{name[2:]}", zlib.compress(stored)


def _two_packs(folder: Path) -> dict[str, bytes]:
    """Make a repository whose second pack names what the first one has, and a bundle of its last commit alone."""
    repository = made.create(folder)
    for number, text in enumerate((OLD, NEW)):
        repository.commit(str(number), **{f"file{number}__c": text.decode()})
        subprocess.run(["git", "repack", "-dq"], cwd=folder, check=True)
    subprocess.run(["git", "bundle", "create", "-q", "../last.bundle", "HEAD~1..HEAD"], cwd=folder, check=True)
    packs = {path.name: path.read_bytes() for path in folder.glob(".git/objects/pack/*.pack")}
    assert len(packs) == 2
    return {**packs, "last.bundle": (folder.parent / "last.bundle").read_bytes()}


def test_packs_of_a_repository_that_has_several_are_read_each(tmp_path: Path) -> None:
    (tmp_path / "zip").write_bytes(zip_bytes(_two_packs(tmp_path / "repository")))
    pieces = list(received_contents(tmp_path / "zip"))

    assert {each.content for each in pieces if not each.is_commit} >= {OLD, NEW}
    assert sum(each.is_commit for each in pieces) >= 2


SYMLINK_WITH_BYTES = bytearray(tar_bytes(entry("link", b"12345"), entry("a.c", OLD)))
SYMLINK_WITH_BYTES[156:157] = b"2"
SYMLINK_WITH_BYTES[148:156] = b"%06o\0 " % (sum(SYMLINK_WITH_BYTES[:148]) + sum(SYMLINK_WITH_BYTES[156:512]) + 8 * 32)


def _zip_of(method: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("a.c", OLD)
    return file.getvalue()


def _with_flag_of_encryption(archive: bytes) -> bytes:
    changed = bytearray(archive)
    changed[6] |= 1
    changed[archive.index(b"PK\x01\x02") + 8] |= 1
    return bytes(changed)


def _of_git(kind: bytes, content: bytes) -> bytes:
    """Return a single object of git, as git stores it."""
    return zlib.compress(kind + b" %d\0" % len(content) + content)


def _with_wrong_checksum(stream: bytes) -> bytes:
    return stream[:-1] + bytes([stream[-1] ^ 1])


BROKEN_ZLIB = [
    (_with_wrong_checksum(zlib.compress(OLD)), "checksum", {OLD}),
    (_with_wrong_checksum(_of_git(b"blob", OLD)), "checksum", {OLD}),
    (zlib.compress(OLD) + zlib.compress(NEW), "follow", {OLD}),
    (zlib.compress(OLD) + b"\n" + json.dumps({"text": NEW.decode()}).encode(), "follow", {OLD, NEW}),
    (zlib.compress(OLD, 0)[:-6] + b"\n" + json.dumps({"text": NEW.decode()}).encode(), "checksum", {NEW}),
    (zlib.compress(OLD * 3000 + bytes(range(256)) * 64)[:600] + b"\xff" * 40, "", {OLD}),
    (b"x\x9c\xff no zlib", "broken", set()),
    (b"x\x01", "ends early", set()),
]
"""Streams of zlib with something wrong, a part of what is said of each, and what is read of it nevertheless."""

UNREAD = [
    (bz2.compress(bytes(64 << 20)), "decompresses"),
    (b"PK\x03\x04 cut off", "zip"),
    (gzip.compress(OLD * 99)[:-6], "ends early"),
    (gzip.compress(OLD) + b"garbage", ""),
    (tar_bytes(entry("a.c", OLD)) + tar_bytes(entry("b.c", NEW)), "data follows the end"),
    (bytes(SYMLINK_WITH_BYTES), "declares 5 bytes"),
    (_zip_of(zipfile.ZIP_LZMA), ""),
    (_zip_of(zipfile.ZIP_BZIP2), ""),
    (b"#!/bin/sh\n" + _zip_of(zipfile.ZIP_DEFLATED), "begins otherwise"),
    (b"\x28\xb5\x2f\xfd and so on", "Zstandard"),
    (lzma.compress(OLD, lzma.FORMAT_ALONE, preset=1), "LZMA"),
    (lzma.compress(OLD * 99, lzma.FORMAT_ALONE, preset=9), "LZMA"),
    (bytes(1024) + tar_bytes(entry("a.c", OLD)), "follows blocks of zeros"),
    (zlib.compress(OLD * 99)[:-6], "ends early"),
    *((content, why) for content, why, _ in BROKEN_ZLIB),
    (_with_flag_of_encryption(zip_bytes({"a.c": OLD})), "encrypted file"),
    (b"PACK\0\0\0\x02\0\0\0\x01", "pack"),
    (
        zip_bytes({"1": zip_bytes({"2": zip_bytes({"3": zip_bytes({"4": zip_bytes({"5": b""})})})})}),
        "deeper than 4",
    ),
]
"""Contents that are not read, or not to their end, each with a part of the reason."""


@pytest.mark.parametrize(("content", "why"), UNREAD, ids=map(str, range(len(UNREAD))))
def test_what_cannot_be_read_within_an_archive_is_said(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "zip").write_bytes(zip_bytes({"inner": content, "last.c": NEW}))
    pieces = list(received_contents(tmp_path / "zip"))
    unread = [each for each in pieces if each.unread]

    assert [each.name.partition("/")[0] for each in unread] == ["inner"]
    assert why in unread[0].unread
    assert NEW in [each.content for each in pieces]
    assert all(not each.content for each in unread)


@pytest.mark.parametrize(("content", "why", "found"), BROKEN_ZLIB, ids=map(str, range(len(BROKEN_ZLIB))))
def test_what_is_read_of_a_broken_stream_of_zlib_is_a_piece(
    tmp_path: Path, content: bytes, why: str, found: set[bytes]
) -> None:
    (tmp_path / "stream").write_bytes(content)
    pieces = list(received_contents(tmp_path / "stream"))

    assert [why in each.unread for each in pieces if each.unread] == [True]
    assert all(any(each.content.startswith(text) for each in pieces) for text in found)


@pytest.mark.parametrize("kind", [b"tree", b"odd", b"blob"])
def test_a_single_object_of_git_holds_what_follows_its_header_whatever_its_kind(tmp_path: Path, kind: bytes) -> None:
    (tmp_path / "object").write_bytes(_of_git(kind, OLD))
    assert OLD in [each.content for each in received_contents(tmp_path / "object")]


def test_what_zlib_holds_is_read_too_where_it_begins_as_an_unknown_object_of_git(tmp_path: Path) -> None:
    (tmp_path / "stream").write_bytes(zlib.compress(b"int 5\0" + OLD))
    assert b"int 5\0" + OLD in [each.content for each in received_contents(tmp_path / "stream")]


def test_a_link_of_a_zip_holds_what_is_stored_as_its_target(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr(link, OLD)
    assert [(each.name, each.content) for each in received_contents(tmp_path / "zip")] == [("link", OLD)]


@pytest.mark.parametrize("first", ["# made by tool 3\n", '"a string"\n', "-\n", "x^2 + 3\n", "x^\n", ""])
def test_lines_of_json_are_read_however_the_file_begins(tmp_path: Path, first: str) -> None:
    (tmp_path / "lines").write_text(first + json.dumps({"text": OLD.decode()}) + "\n")
    pieces = list(received_contents(tmp_path / "lines"))
    assert OLD in [each.content for each in pieces]
    assert not any(each.unread for each in pieces)


@pytest.mark.parametrize("content", [b"PACK\0\0\0\x02 and nothing", b"\x1f\x8b cut off", b"PK\x03\x04 cut off"])
def test_what_cannot_be_read_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "blob").write_bytes(content)
    with pytest.raises(ArchiveError):
        list(received_contents(tmp_path / "blob"))


@pytest.mark.parametrize("content", [b"", b"int a;", b"PACKAGE", bytes(range(256)) * 4])
def test_what_is_no_archive_is_one_piece(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "blob").write_bytes(content)
    assert [each.content for each in received_contents(tmp_path / "blob")] == [content]


@pytest.mark.parametrize(
    "line",
    [
        '{"text": %s, "text": "again"}',
        '{"number": ' + "1" * 5000 + ', "text": %s}',
        "[" * 3000 + "%s",
        '{"by": "J\udcfcrgen", "text": %s}',
        '{%s: "a name"}',
        '{"text": %s} {"a": 1} // and more',
        '{"raw": "a\ttab", "text": %s',
        '  "text": %s,\r  "more": 1',
    ],
)
def test_strings_are_read_of_a_line_that_is_not_json_by_all_rules(tmp_path: Path, line: str) -> None:
    text = "# first\n" + line.replace("%s", json.dumps(OLD.decode())) + "\n"
    (tmp_path / "lines").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert OLD in [each.content for each in received_contents(tmp_path / "lines")]


@pytest.mark.parametrize(
    ("string", "text"),
    [
        (r"it\'s\n", "it's\n"),
        (r"\Ursula \u00fc \u12", "Ursula ü u12"),
        (r"a\\\'\"\/\x", "a\\'\"/x"),
        (r"\\u00fc \q", "\\u00fc q"),
    ],
)
def test_a_string_with_an_escape_that_json_does_not_know_is_read_as_if_it_were_none(
    tmp_path: Path, string: str, text: str
) -> None:
    (tmp_path / "lines").write_text(f'{{"text": "{string}"}}\n')
    assert text.encode() in [each.content for each in received_contents(tmp_path / "lines")]


def test_a_line_that_is_cut_within_a_string_gives_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(json.dumps({"by": "J\u00fcrgen", "text": OLD.decode()}).encode()[:-6])
    assert [b"by", "Jürgen".encode(), b"text", b"int old_on"] == [
        each.content for each in received_contents(tmp_path / "lines")
    ][1:]


def test_a_tag_that_was_merged_names_who_made_it_and_quotes_its_message() -> None:
    header = (
        b"tree 1\nauthor A <a@b.c> 1 +0000\ncommitter C <c@d.e> 1 +0000\nmergetag object 2\n type commit\n tag v1\n"
    )
    header += b" tagger Ursula <u@v.w> 1 +0000\n \n The words of the tag\n"
    merged = ReceivedContent(header + b"\nMerge v1\n", is_commit=True)

    assert [line.split(b" <")[0] for line in merged.people.split(b"\n")] == [b"A", b"C", b"Ursula"]
    assert b"The words of the tag" in merged.without(())
    assert b"Merge v1" in merged.without(())
    assert b"Ursula" not in merged.without(())
    assert merged.message == b"Merge v1\n"


def test_a_file_has_the_id_that_git_gives_it() -> None:
    assert ReceivedContent(b"").git_blob_id == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
