"""Decompression: the same bytes from every format, and more of them than allowed are refused while they come out."""

import bz2
import gzip
import hashlib
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.stages.collect.params import CollectParams
from tests.support.made.made_archives import SMALL, entry, read, refusal, tar_bytes, zip_bytes


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, bz2.compress])
def test_a_tar_reads_the_same_however_it_is_compressed(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    contents = read(tmp_path, pack(SMALL))
    assert [(file.path, file.content) for file in contents.files] == [("a.h", b"int a();\n"), ("b.cpp", b"int b;\n")]
    assert contents.skipped == ()


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
@pytest.mark.parametrize("num_zeros", [0, 30_000])
def test_a_long_file_comes_out_whole_across_blocks(
    tmp_path: Path, pack: Callable[[bytes], bytes], num_zeros: int
) -> None:
    content = hashlib.shake_128(b"a").digest(100_000).hex().encode() + b" " * num_zeros
    assert [file.content for file in read(tmp_path, pack(tar_bytes(entry("d/x.cpp", content)))).files] == [content]


def test_a_header_of_gzip_that_does_not_have_its_checksum_is_refused(tmp_path: Path) -> None:
    plain = gzip.compress(SMALL, mtime=0)
    header = plain[:3] + b"\x02" + plain[4:10]
    checksum = zlib.crc32(header) & 0xFFFF

    assert len(read(tmp_path, header + checksum.to_bytes(2, "little") + plain[10:]).files) == 2
    assert "is broken" in refusal(tmp_path, header + (checksum ^ 1).to_bytes(2, "little") + plain[10:])


def test_zeros_after_gzip_are_padding(tmp_path: Path) -> None:
    assert len(read(tmp_path, gzip.compress(SMALL) + b"\0" * 7).files) == 2


def test_two_streams_are_one_archive(tmp_path: Path) -> None:
    for pack in (gzip.compress, lzma.compress, bz2.compress):
        assert len(read(tmp_path, pack(SMALL[:700]) + pack(SMALL[700:])).files) == 2


def test_a_bomb_is_refused_by_its_ratio_long_before_its_end(tmp_path: Path) -> None:
    bomb = gzip.compress(tar_bytes(entry("d/x.cpp", b"\0" * 20_000_000)))
    assert "200 bytes for each packed byte" in refusal(tmp_path, bomb)
    assert "200 bytes for each packed byte" in refusal(tmp_path, zip_bytes({"x.cpp": b"\0" * 20_000_000}))


def test_a_short_run_of_zeros_is_not_a_bomb(tmp_path: Path) -> None:
    assert len(read(tmp_path, gzip.compress(tar_bytes(entry("d/x.cpp", b"\0" * 500_000)))).files) == 1


def test_more_bytes_than_allowed_are_refused_while_they_come_out(tmp_path: Path) -> None:
    tail_of_zeros = SMALL + b"\0" * 100_000
    assert "at most 20000 bytes in all" in refusal(tmp_path, tail_of_zeros, CollectParams(max_total_bytes=20_000))


def test_a_name_that_begins_like_compressed_data_is_a_name(tmp_path: Path) -> None:
    for name in ("BZFlag-2/x.c", "BZh9/x.c"):
        assert [file.path for file in read(tmp_path, tar_bytes(entry(name, b"int x;"))).files] == ["x.c"]
