"""Records of pax headers, as the standard writes them. `tarfile` reads past a broken one, and takes 0 for what is no number."""

import re
import tarfile

_RECORD = re.compile(rb"([0-9]{1,9}) ([^=\n]{1,200})=")
_NUMBERS = frozenset({b"size", b"uid", b"gid", b"mtime", b"atime", b"ctime"})
_NUMBER = re.compile(rb"-?[0-9]{1,30}(?:\.[0-9]{0,30})?")


def require_records(records: bytes) -> None:
    """Require records of a length, a name, a value and a line end, and numbers where numbers are; ValueError otherwise."""
    at = 0
    while at < len(records.rstrip(b"\0")):
        match = _RECORD.match(records, at)
        end = at + int(match[1]) if match else at
        if match is None or end < match.end() + 1 or records[end - 1 : end] != b"\n":
            raise ValueError(f"a pax record is broken: {records[at : at + 40]!r}")
        value = records[match.end() : end - 1]
        if match[2] in _NUMBERS and value and not _NUMBER.fullmatch(value):
            raise ValueError(f"a pax record is no number: {records[at : at + 40]!r}")
        at = end


class Replayed:
    """A block that was read from an archive's stream, and is read once more before the stream goes on."""

    def __init__(self, block: bytes, archive: tarfile.TarFile) -> None:
        self._block, self._archive, self._stream = block, archive, archive.fileobj

    def read(self, _: int) -> bytes:
        self._archive.fileobj = self._stream
        return self._block
