"""Containers: the same members from every format, and what is broken, too large or no archive is refused."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.errors import ArchiveError
from tests.support.made.made_archives import LIMITS, SMALL, entry, read, refusal, tar_bytes, zip_bytes


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


def _gnu_name(name: bytes) -> bytes:
    info, _ = entry("././@LongLink", name)
    info.type = tarfile.GNUTYPE_LONGNAME
    return info.tobuf(tarfile.GNU_FORMAT) + name.ljust(512, b"\0")


def _pax(type: bytes, record: bytes) -> bytes:
    info, _ = entry("pax", record)
    info.type = type
    return info.tobuf(tarfile.USTAR_FORMAT) + record.ljust(512, b"\0")


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (_gnu_name(b"d/one.c\0") + _gnu_name(b"d/two.c\0"), "a member has two extended headers"),
        (_gnu_name(b"d/one.c\0") + _pax(tarfile.XHDTYPE, b"16 path=d/two.c\n"), "a member has two extended headers"),
        (_pax(tarfile.XHDTYPE, b"9 size=2\n"), "has 2 bytes by one header and 6 by another"),
        (_pax(tarfile.XGLTYPE, b"16 path=d/two.c\n"), "a global header sets a field that only one member can have"),
    ],
)
def test_a_tar_that_readers_understand_in_two_ways_is_refused(tmp_path: Path, headers: bytes, message: str) -> None:
    assert message in refusal(tmp_path, headers + tar_bytes(entry("d/x.cpp", b"int x;")))


def test_a_zip_that_readers_understand_in_two_ways_is_refused(tmp_path: Path) -> None:
    sound = zip_bytes({"d/x.cpp": b"int x;", "d/y.cpp": b"int y;"})
    assert "holds a backslash" in refusal(tmp_path, sound.replace(b"d/x.cpp", b"d\\x.cpp"))
    at = sound.index(b"PK\x01\x02")
    start = (at + 9).to_bytes(4, "little")
    apart = sound[:at] + b"no member" + sound[at:].replace(at.to_bytes(4, "little"), start)
    assert "9 bytes of no member follow 'd/y.cpp'" in refusal(tmp_path, apart)


class _Pipe(io.BytesIO):
    """A file that no writer can go back in: the sizes of a zip's member follow it."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: object) -> int:
        raise io.UnsupportedOperation


def test_what_follows_a_streamed_member_of_a_zip_must_be_what_the_directory_says(tmp_path: Path) -> None:
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("d/x.cpp", b"int x;")
    streamed = pipe.getvalue()
    record = streamed.index(b"PK\x07\x08")

    assert [file.path for file in read(tmp_path, streamed).files] == ["x.cpp"]
    for at in range(record, record + 16):
        assert "d/x.cpp" in refusal(tmp_path, flipped(streamed, at))


def test_a_member_that_ends_before_its_compressed_bytes_do_is_refused(tmp_path: Path) -> None:
    sound = zip_bytes({"x.cpp": b"int xyz;"})
    packed, start = 10, 30 + len("x.cpp")
    assert sound.count(packed.to_bytes(4, "little")) == 2
    longer = sound[: start + packed] + b"hidden.." + sound[start + packed :]
    at = sound.index(b"PK\x01\x02").to_bytes(4, "little")
    longer = longer.replace(packed.to_bytes(4, "little"), (packed + 8).to_bytes(4, "little"))
    longer = longer.replace(at, (int.from_bytes(at, "little") + 8).to_bytes(4, "little"))
    assert "ends elsewhere than at its 18 compressed bytes" in refusal(tmp_path, longer)


def test_a_member_with_two_fields_of_its_sizes_is_refused(tmp_path: Path) -> None:
    target, info = io.BytesIO(), zipfile.ZipInfo("x.cpp")
    info.extra = struct.pack("<2HQ", 1, 8, 6) * 2
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(info, b"int x;")
    assert "has sizes in 2 extra fields" in refusal(tmp_path, target.getvalue())


@pytest.mark.parametrize("magic", [b"ustar  \0", b"\0" * 8])
def test_a_beginning_of_a_name_in_a_tar_whose_format_has_none_is_refused(tmp_path: Path, magic: bytes) -> None:
    block = bytearray(entry("x.cpp")[0].tobuf(tarfile.USTAR_FORMAT))
    block[257:265], block[345:350] = magic, b"other"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    assert "the beginning of a name where its format has none" in refusal(tmp_path, bytes(block) + bytes(1024))


def zip64_bytes(num_bytes: int = 44, at: int | None = None) -> bytes:
    """Return a zip with a zip64 end record that says to be so long after its first fields, and a locator of it."""
    sound = zip_bytes({"x.cpp": b"int x;"})
    body, end = sound[:-22], sound[-22:]
    size, start = struct.unpack("<2I", end[12:20])
    record = b"PK\x06\x06" + struct.pack("<Q2H2I4Q", num_bytes, 45, 45, 0, 0, 1, 1, size, start)
    locator = b"PK\x06\x07" + struct.pack("<IQI", 0, len(body) if at is None else at, 1)
    return body + record + locator + end


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (zip64_bytes(1 << 62), "its zip64 end record says to be 4611686018427387916 bytes long, and is 56"),
        (zip64_bytes(45), "its zip64 end record says to be 57 bytes long, and is 56"),
        (zip64_bytes(at=1 << 60), "its zip64 end record is not at the offset that its locator gives"),
        (
            zip_bytes({"x.cpp": b"int x;"})
            .replace(b"x.cpp", b"")
            .replace(b"\5\0\0\0", b"\0" * 4)
            .replace(struct.pack("<2I", 51, 43), struct.pack("<2I", 46, 38)),
            "a member has no name",
        ),
    ],
)
def test_an_end_record_or_a_name_that_is_none_is_told_in_words(tmp_path: Path, content: bytes, message: str) -> None:
    assert message in refusal(tmp_path, content)
    assert [file.path for file in read(tmp_path, zip64_bytes()).files] == ["x.cpp"]


def test_ten_gigabytes_are_refused_on_their_promise(tmp_path: Path) -> None:
    info, _ = entry("d/x.cpp")
    info.size = 10 * 10**9
    message = refusal(tmp_path, gzip.compress(info.tobuf() + b"\0" * 4096))
    assert "demo: 'd/x.cpp': declares 10000000000 bytes" in message
    assert f"at most {LIMITS.max_total_bytes} bytes in all" in message


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
        (b"PK\x05\x06" + bytes(18) + b"garbage", "is broken"),
        (b"PK\x05\x06" + bytes(18) + b"another" + b"PK\x05\x06" + bytes(12) + b"\x1d\0\0\0\0\0", "bytes of no member"),
        (gzip.compress(SMALL)[:-30], "is broken"),
        (flipped(gzip.compress(SMALL), -5), "is broken"),
        (gzip.compress(SMALL) + b"garbage", "is broken"),
        (lzma.compress(SMALL) + b"garbage", "is broken"),
        (lzma.compress(SMALL)[:-10], "is broken"),
        (bz2.compress(SMALL) + b"garbage", "is broken"),
        (bz2.compress(SMALL)[:-10], "is broken"),
        (SMALL + b"garbage", "data follows the end"),
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


@settings(max_examples=150)
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
