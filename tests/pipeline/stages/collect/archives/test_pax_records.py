"""Records of pax headers: what the standard writes is read, and what two readers take differently is refused."""

import pytest

from pipeline.stages.collect.archives.pax_records import require_records


@pytest.mark.parametrize(
    "records",
    [
        b"",
        b"16 path=d/two.c\n",
        b"12 size=123\n20 mtime=1700000.25\n\0\0\0",
        b"8 size=\n17 comment=a\nb=c\n",
    ],
)
def test_records_as_the_standard_writes_them_are_accepted(records: bytes) -> None:
    require_records(records)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (b"15 path=d/two.c\n", "a pax record is broken: b'15 path=d/two.c"),
        (b"16 path=d/two.c\n99 size=1\n", "a pax record is broken: b'99 size=1"),
        (b"0 path=a\n", "a pax record is broken"),
        (b"path=a\n", "a pax record is broken: b'path=a"),
        (b"14 size=0x1f5\n", "a pax record is no number: b'14 size=0x1f5"),
    ],
)
def test_other_records_are_refused_with_their_bytes(records: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        require_records(records)
