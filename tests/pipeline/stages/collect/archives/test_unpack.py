"""Archives: the same files from every format, each read or skipped with its reason, and the members that are refused."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.errors import ArchiveError
from pipeline.pins.local_tree import printable_path
from pipeline.pins.selection import Selection
from pipeline.stages.collect.archives.unpack import unpack
from pipeline.stages.collect.contents import ReadOptions, SourceContents
from pipeline.stages.collect.params import CollectParams

LIMITS = CollectParams()
ALL = Selection()


def entry(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, target: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, len(content), target
    return info, content


def tar_bytes(*entries: tuple[tarfile.TarInfo, bytes], form: int = tarfile.GNU_FORMAT) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=form, encoding="utf-8", errors="surrogateescape") as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content) if content else None)
    return target.getvalue()


def read(folder: Path, content: bytes, limits: CollectParams = LIMITS, selection: Selection = ALL) -> SourceContents:
    path = folder / "archive"
    path.write_bytes(content)
    return unpack(path, ReadOptions("demo", selection, limits))


def refusal(folder: Path, content: bytes, limits: CollectParams = LIMITS) -> str:
    with pytest.raises(ArchiveError) as caught:
        read(folder, content, limits)
    return str(caught.value)


SMALL = tar_bytes(entry("demo-1.0/b.cpp", b"int b;\n"), entry("demo-1.0/a.h", b"int a();\n"))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, bz2.compress])
def test_a_tar_reads_the_same_however_it_is_compressed(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    contents = read(tmp_path, pack(SMALL))
    assert [(file.path, file.content) for file in contents.files] == [("a.h", b"int a();\n"), ("b.cpp", b"int b;\n")]
    assert contents.skipped == ()


def test_two_streams_of_xz_or_bzip2_are_one_archive(tmp_path: Path) -> None:
    for pack in (lzma.compress, bz2.compress):
        assert len(read(tmp_path, pack(SMALL[:700]) + pack(SMALL[700:])).files) == 2


def zip_bytes(files: Mapping[str, bytes], modes: Mapping[str, int] | None = None) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (modes or {}).get(name, 0o100644) << 16
            archive.writestr(info, content)
    return target.getvalue()


def test_a_zip_reads_like_a_tar(tmp_path: Path) -> None:
    files = {"d/": b"", "d/a.cc": b"int a;", "d/LICENSE": b"MIT", "d/x.py": b"pass", "d/l.h": b"a.cc"}
    contents = read(tmp_path, zip_bytes(files, {"d/l.h": 0o120777}))
    assert [file.path for file in contents.files] == ["LICENSE", "a.cc"]
    assert [(drop.path, drop.reason, drop.detail) for drop in contents.skipped] == [
        ("l.h", "link", "a.cc"),
        ("x.py", "other_language", ""),
    ]


@pytest.mark.parametrize("declared", [0, 3])
def test_a_zip_member_that_is_longer_than_it_declares_is_refused(tmp_path: Path, declared: int) -> None:
    honest = zip_bytes({"a.cpp": b"int a = 1; // forty-three bytes of text, yes"})
    size = (44).to_bytes(4, "little")
    assert honest.count(size) >= 2
    assert "is broken" in refusal(tmp_path, honest.replace(size, declared.to_bytes(4, "little")))


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


@pytest.mark.parametrize(
    ("glob", "path", "holds"),
    [
        ("*.cpp", "a.cpp", True),
        ("*.cpp", "d/a.cpp", False),
        ("**/*.cpp", "a.cpp", True),
        ("**/*.cpp", "d/e/a.cpp", True),
        ("d/**", "d/e/a.cpp", True),
        ("d/**", "e/d/a.cpp", False),
        ("d/**/a.cpp", "d/a.cpp", True),
        ("?.h", "ab.h", False),
        ("a+b.h", "a+b.h", True),
        ("a.h", "axh", False),
    ],
)
def test_a_star_stays_in_its_folder_and_two_do_not(glob: str, path: str, holds: bool) -> None:
    assert Selection(include=(glob,)).accepts(path) is holds
    assert Selection(exclude=(glob,)).accepts(path) is not holds


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


def test_ten_gigabytes_are_refused_on_their_promise(tmp_path: Path) -> None:
    info, _ = entry("d/x.cpp")
    info.size = 10 * 10**9
    message = refusal(tmp_path, gzip.compress(info.tobuf() + b"\0" * 4096))
    assert "demo: 'd/x.cpp': declares 10000000000 bytes" in message
    assert f"at most {LIMITS.max_total_bytes} bytes in all" in message


def test_a_bomb_is_refused_by_its_ratio_long_before_its_end(tmp_path: Path) -> None:
    bomb = gzip.compress(tar_bytes(entry("d/x.cpp", b"\0" * 20_000_000)))
    assert "200 bytes for each packed byte" in refusal(tmp_path, bomb)
    assert "200 bytes for each packed byte" in refusal(tmp_path, zip_bytes({"x.cpp": b"\0" * 20_000_000}))


def test_a_short_run_of_zeros_is_not_a_bomb(tmp_path: Path) -> None:
    assert len(read(tmp_path, gzip.compress(tar_bytes(entry("d/x.cpp", b"\0" * 500_000)))).files) == 1


def test_more_members_than_allowed_are_refused(tmp_path: Path) -> None:
    many = tar_bytes(*(entry(f"d/{number}.h") for number in range(20)))
    assert "more members than 10" in refusal(tmp_path, many, CollectParams(max_members=10))


def test_more_bytes_than_allowed_are_refused_while_they_come_out(tmp_path: Path) -> None:
    tail_of_zeros = SMALL + b"\0" * 100_000
    assert "at most 20000 bytes in all" in refusal(tmp_path, tail_of_zeros, CollectParams(max_total_bytes=20_000))


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"<!DOCTYPE html><html>not found</html>" + b" " * 600, "<!DOCTYPE html>"),
        (b"", "is broken"),
        (b"\x1f\x8b", "is broken"),
        (b"BZh9 nothing of the kind", "is broken"),
        (b"PK\x03\x04 nothing of the kind", "is broken"),
        (gzip.compress(SMALL)[:-30], "is broken"),
        (flipped(gzip.compress(SMALL), -5), "is broken"),
        (gzip.compress(SMALL) + b"garbage", "is broken"),
        (lzma.compress(SMALL) + b"garbage", "is broken"),
        (lzma.compress(SMALL)[:-10], "is broken"),
        (bz2.compress(SMALL) + b"garbage", "is broken"),
        (bz2.compress(SMALL)[:-10], "is broken"),
        (SMALL + b"garbage", "something follows the end"),
        (SMALL[:1400], "is broken"),
        (SMALL[:2048], "is broken"),
        (flipped(SMALL, 1024), "is broken"),
        (flipped(zip_bytes({"a.cpp": b"int a;"}), 36), "is broken"),
    ],
)
def test_what_is_broken_truncated_or_no_archive_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    message = refusal(tmp_path, content)
    assert message.startswith("demo: is broken")
    assert expected in message


def test_a_large_header_or_thousands_of_them_are_refused_and_not_followed(tmp_path: Path) -> None:
    long_name, _ = entry("x", kind=tarfile.GNUTYPE_LONGNAME)
    long_name.size = 2 * 1024**2
    assert "a header declares 2097152 bytes" in refusal(tmp_path, long_name.tobuf() + b"a" * 2 * 1024**2)
    chain = b"".join([entry("x", kind=tarfile.GNUTYPE_LONGNAME)[0].tobuf()] * 5000)
    assert "is broken" in refusal(tmp_path, chain + SMALL)


def test_a_negative_size_is_refused(tmp_path: Path) -> None:
    header = bytearray(entry("d/a.cpp")[0].tobuf())
    header[124:136] = (-512).to_bytes(12, "big", signed=True)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    assert "declares -512 bytes" in refusal(tmp_path, bytes(header) + SMALL)


def test_a_name_that_is_not_utf_8_is_kept_so_that_it_can_be_printed_and_undone(tmp_path: Path) -> None:
    name = b"d/caf\xe9.cpp".decode("utf-8", "surrogateescape")
    contents = read(tmp_path, tar_bytes(entry(name, b"1"), entry("d/plain.cpp", b"2")))
    assert [file.path for file in contents.files] == ["caf\\xe9.cpp", "plain.cpp"]


@given(st.binary(max_size=20).filter(lambda name: b"\0" not in name))
def test_printable_paths_never_meet_and_never_hold_surrogates(raw: bytes) -> None:
    printed = printable_path(raw.decode("utf-8", "surrogateescape"))
    undone = printed.replace("\\\\", "\udcff").encode("utf-8", "surrogatepass")
    parts = undone.split(b"\\x")
    restored = parts[0] + b"".join(bytes.fromhex(part[:2].decode()) + part[2:] for part in parts[1:])
    assert restored.replace("\udcff".encode("utf-8", "surrogatepass"), b"\\") == raw
    printed.encode()


@settings(max_examples=150, deadline=None)
@given(at=st.integers(0, len(SMALL) - 1), bit=st.integers(0, 7))
def test_a_flipped_bit_is_refused_or_loses_no_member(
    tmp_path_factory: pytest.TempPathFactory, at: int, bit: int
) -> None:
    damaged = SMALL[:at] + bytes([SMALL[at] ^ (1 << bit)]) + SMALL[at + 1 :]
    try:
        contents = read(tmp_path_factory.getbasetemp(), damaged)
    except ArchiveError:
        return
    assert len(contents.files) + len(contents.skipped) == 2
