"""Decompression of archives, bounded in memory, in bytes and in its ratio."""

import bz2
import io
import lzma
import zlib
from collections.abc import Callable
from typing import BinaryIO

from pipeline.stages.collect.contents import broken, over_limit
from pipeline.stages.collect.params import CollectParams

BLOCKS_OF_BZIP2 = (b"1AY&SY", b"\x17rE8P\x90")
"""Bytes 4 to 9 of bzip2: a block, or the end of an empty stream. A tar may begin with the name `BZh9`."""
_MAX_DICTIONARY_BYTES = 256 * 1024**2
"""Memory for decompressing xz: its strongest preset needs 65 MiB."""

MIN_BYTES_FOR_RATIO = 1024**2
"""Decompressed bytes before the compression ratio is checked: a short run of zeros is not a bomb."""


class MeteredStream:
    """A decompressed stream that stops at the size and ratio limits instead of filling memory."""

    def __init__(self, stream: "_Stream", packed: BinaryIO, limits: CollectParams, subject: str) -> None:
        self._stream = stream
        self._packed = packed
        self._limits = limits
        self._subject = subject
        self._num_bytes = 0

    def read(self, size: int) -> bytes:
        block = self._stream.read(size)
        self._num_bytes += len(block)
        if self._num_bytes > self._limits.max_total_bytes:
            raise over_limit(self._subject, "decompresses to more", f"{self._limits.max_total_bytes} bytes in all")
        ratio = self._limits.max_compression_ratio
        if self._num_bytes > max(MIN_BYTES_FOR_RATIO, ratio * self._packed.tell()):
            found = f"decompresses {self._packed.tell()} bytes to {self._num_bytes}"
            raise over_limit(self._subject, found, f"{ratio} bytes for each packed byte")
        return block


def _xz() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, _MAX_DICTIONARY_BYTES)


class _Gunzip:
    """Decompressor of one gzip stream with the attributes of those of xz and bzip2. zlib also checks the checksum of a header."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._is_full = False

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._inflate.unconsumed_tail and not self._is_full

    def decompress(self, packed: bytes, size: int) -> bytes:
        block = self._inflate.decompress(self._inflate.unconsumed_tail + packed, size)
        self._is_full = len(block) == size  # more may be there without any input
        return block


_Decompressor = _Gunzip | lzma.LZMADecompressor | bz2.BZ2Decompressor


class _Decompressed:
    """Decompressed data. Unlike the standard library's file classes it does not ignore what follows the last stream."""

    def __init__(self, packed: BinaryIO, create: Callable[[], _Decompressor], padding: int = 1) -> None:
        self._packed = packed
        self._create = create
        self._padding = padding
        self._decompressor = create()

    def read(self, size: int) -> bytes:
        while True:
            if self._decompressor.eof:
                rest = self._next_stream()
                if not rest:
                    return b""
                self._decompressor = self._create()
            else:
                rest = self._packed.read(io.DEFAULT_BUFFER_SIZE) if self._decompressor.needs_input else b""
                if not rest and self._decompressor.needs_input:
                    raise EOFError("the compressed data ends early")
            block = self._decompressor.decompress(rest, size)
            if block:
                return block

    def _next_stream(self) -> bytes:
        """Return the first bytes of the stream after this one and its padding, which is a multiple of so many zeros."""
        rest, num_zeros = self._decompressor.unused_data, 0
        while block := rest or self._packed.read(io.DEFAULT_BUFFER_SIZE):
            rest = block.lstrip(b"\0")
            num_zeros += len(block) - len(rest)
            if rest:
                break
        if num_zeros % self._padding:
            raise EOFError(f"{num_zeros} zeros follow a compressed stream")
        return rest


_Stream = BinaryIO | _Decompressed
_PADDING = 4
"""Zeros after a stream of xz or bzip2 are a multiple of so many."""


def decompressed(file: BinaryIO, start: bytes, limits: CollectParams, subject: str) -> MeteredStream:
    """Decompress a file that begins with `start`: gzip, xz or bzip2, or neither. Raises ArchiveError over the limits."""
    stream: _Stream = file
    if start.startswith(b"\x1f\x8b"):
        if start[3:4] > b"\x1f":
            raise broken(subject, "its gzip header sets reserved flags")
        stream = _Decompressed(file, _Gunzip)
    elif start.startswith(b"\xfd7zXZ\x00"):
        stream = _Decompressed(file, _xz, _PADDING)
    elif start.startswith(b"BZh") and start[4:10] in BLOCKS_OF_BZIP2:
        stream = _Decompressed(file, bz2.BZ2Decompressor, _PADDING)
    return MeteredStream(stream, file, limits, subject)
