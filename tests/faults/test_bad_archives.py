"""Refusals of archives by collect: one row for each bad archive, from the pin to the error, collected beside a sound source."""

import gzip
import lzma
import tarfile
from collections.abc import Callable

import pytest

from pipeline.core.errors import ArchiveError, SluiceError
from tests.faults.conftest import Make, check_refusal
from tests.support.made.made_bad_archives import (
    SOUND,
    commented,
    declare_window,
    entry,
    flipped,
    listed_zip,
    lying_zip,
    renumbered,
    sparse,
    tar,
    two_readings_of_a_zip,
    with_window,
    zip_end,
    zip_of_member,
    zip_of_two_names,
    zip_of_wrong_checksum,
    zipped,
)
from tests.support.made.made_bad_inputs import PAGE

LINK, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE


REFUSED: list[tuple[str, Make, type[SluiceError], str]] = [
    ("zip slip", lambda b: b.archive(zipped({"d/../../x.c": b""})), ArchiveError, "leaves the archive through `..`"),
    ("tar slip", lambda b: b.archive(tar({"d/../../x.c": b""})), ArchiveError, "leaves the archive through `..`"),
    ("absolute path", lambda b: b.archive(tar({"/etc/x.c": b""})), ArchiveError, "'/etc/x.c': has an absolute path"),
    ("Windows drive", lambda b: b.archive(tar({"C:\\x.c": b""})), ArchiveError, "has an absolute path"),
    ("Windows share", lambda b: b.archive(zipped({"\\\\h\\x.c": b""})), ArchiveError, "has an absolute path"),
    ("Windows climb", lambda b: b.archive(tar({"d\\..\\..\\x.c": b""})), ArchiveError, "leaves the archive"),
    ("NUL in a name", lambda b: b.archive(zipped({"a.c_.h": b""}).replace(b"c_", b"c\0")), ArchiveError, "NUL"),
    ("link out", lambda b: b.archive(tar({}, entry("d/l.h", LINK, "../../x"))), ArchiveError, "is a link to '../../x'"),
    (
        "link to /",
        lambda b: b.archive(tar({}, entry("d/l.h", LINK, "/etc/passwd"))),
        ArchiveError,
        "is a link to '/etc",
    ),
    ("hard link out", lambda b: b.archive(tar({}, entry("d/l.h", HARD, "../x"))), ArchiveError, "is a hard link to"),
    (
        "file through a link",
        lambda b: b.archive(tar({}, entry("d/l", LINK, "."), entry("d/l/x.c", tarfile.REGTYPE))),
        ArchiveError,
        "'d/l/x.c' is below 'd/l', which is not a folder",
    ),
    ("device", lambda b: b.archive(tar({}, entry("d/x.c", tarfile.CHRTYPE))), ArchiveError, "is a device"),
    ("FIFO", lambda b: b.archive(tar({}, entry("d/x.c", tarfile.FIFOTYPE))), ArchiveError, "is a FIFO"),
    ("sparse bomb", lambda b: b.archive(sparse()), ArchiveError, "'d/x.c': declares 8589934592 bytes"),
    (
        "ratio bomb",
        lambda b: b.archive(gzip.compress(tar({"d/x.c": b"\0" * 20_000_000}))),
        ArchiveError,
        "at most 200 bytes for each packed byte",
    ),
    (
        "zip of overlapping members",
        lambda b: b.archive(listed_zip([b"%04d.c" % number for number in range(5000)], b"\0" * 1_000_000)),
        ArchiveError,
        "5000000000 bytes are declared in",
    ),
    (
        "a million tiny members",
        lambda b: b.archive(listed_zip([b"%06d.c" % number for number in range(1_000_000)], b"")),
        ArchiveError,
        "has more members than 200000",
    ),
    ("colliding case", lambda b: b.archive(tar({"A.c": b"", "a.c": b""})), ArchiveError, "'A.c' and 'a.c' collide"),
    (
        "colliding accents",
        lambda b: b.archive(tar({"\u00e9.c": b"", "e\u0301.c": b""})),
        ArchiveError,
        "collide; expected paths that differ in more than case",
    ),
    ("endless path", lambda b: b.archive(tar({"d/" * 900 + "x.c": b""})), ArchiveError, "its path has 1803 bytes"),
    ("deep path", lambda b: b.archive(tar({"d/" * 65 + "x.c": b""})), ArchiveError, "is 65 folders deep"),
    ("truncated tar", lambda b: b.archive(tar(SOUND)[:600]), ArchiveError, "is broken"),
    ("truncated gzip", lambda b: b.archive(gzip.compress(tar(SOUND))[:-20]), ArchiveError, "is broken"),
    ("truncated zip", lambda b: b.archive(zipped(SOUND)[:-30]), ArchiveError, "is broken"),
    ("tail after tar", lambda b: b.archive(tar(SOUND) + b"more"), ArchiveError, "follows the end of the tar archive"),
    ("tail after gzip", lambda b: b.archive(gzip.compress(tar(SOUND)) + b"more"), ArchiveError, "is broken"),
    ("tail after xz", lambda b: b.archive(lzma.compress(tar(SOUND)) + b"more"), ArchiveError, "is broken"),
    (
        "tail after zip",
        lambda b: b.archive(zipped(SOUND) + b"more"),
        ArchiveError,
        "follows the end of the zip archive",
    ),
    (
        "two ends of a zip",
        lambda b: b.archive(commented(zipped(SOUND), b"PK\x05\x06" + b"x" * 18)),
        ArchiveError,
        "is broken",
    ),
    (
        "zip that declares more than it holds",
        lambda b: b.archive(lying_zip()),
        ArchiveError,
        "'d/a.c' has another header",
    ),
    (
        "zip whose member has another method in its header",
        lambda b: b.archive(zipped(SOUND).replace(b"\x08", b"\0", 1)),
        ArchiveError,
        "has another header than the directory says",
    ),
    (
        "xz with three zeros after it",
        lambda b: b.archive(lzma.compress(tar(SOUND)) + bytes(3)),
        ArchiveError,
        "3 zeros follow a compressed stream",
    ),
    (
        "xz with a stream far after its padding",
        lambda b: b.archive(lzma.compress(tar(SOUND)) + bytes(40_000) + lzma.compress(tar(SOUND))),
        ArchiveError,
        "data follows the end of the tar archive",
    ),
    (
        "tar with a pax record that is no number",
        lambda b: b.archive(tar({}, entry("d/a.c", b"0", pax_headers={"uid": "x"}), form=tarfile.PAX_FORMAT)),
        ArchiveError,
        "a pax record is no number",
    ),
    (
        "gzip with reserved flags",
        lambda b: b.archive(b"\x1f\x8b\x08\xe0" + gzip.compress(tar(SOUND))[4:]),
        ArchiveError,
        "reserved flags",
    ),
    (
        "zip folder with content",
        lambda b: b.archive(zipped({"d/": b"x", **SOUND})),
        ArchiveError,
        "folder with content",
    ),
    (
        "zip whose directory is outside of it",
        lambda b: b.archive(zip_end(zipped(SOUND), 16, "<I", 2**31)),
        ArchiveError,
        "is broken",
    ),
    (
        "zip whose directory is before it",
        lambda b: b.archive(zip_end(zipped(SOUND), 12, "<I", 2**31)),
        ArchiveError,
        "",
    ),
    (
        "zip of several disks",
        lambda b: b.archive(zip_end(zipped(SOUND), 4, "<H", 1)),
        ArchiveError,
        "disk 1 of a split archive",
    ),
    (
        "zip that counts other members",
        lambda b: b.archive(zip_end(zipped(SOUND), 10, "<H", 7)),
        ArchiveError,
        "it declares 1 of 7 members, and lists 1",
    ),
    (
        "zip after other bytes",
        lambda b: b.archive(b"PK\x03\x04" + zipped(SOUND)),
        ArchiveError,
        "its directory is said",
    ),
    (
        "zip with a hidden member",
        lambda b: b.archive(two_readings_of_a_zip()),
        ArchiveError,
        "49 bytes of no member are before its first",
    ),
    (
        "tar member without a name",
        lambda b: b.archive(tar({}, entry("./", tarfile.REGTYPE)) + tar(SOUND)),
        ArchiveError,
        "'./': is a file with the name of a folder",
    ),
    (
        "hard link to nothing",
        lambda b: b.archive(tar(SOUND, entry("d/l.c", HARD, "d/none.c"))),
        ArchiveError,
        "'d/l.c': is a hard link to 'd/none.c'; expected a member before it",
    ),
    (
        "link with content",
        lambda b: b.archive(tar({}, entry("d/l.c", LINK, "a.c", size=1024)) + tar(SOUND)),
        ArchiveError,
        "is a link and declares 1024 bytes",
    ),
    (
        "size with an underscore",
        lambda b: b.archive(renumbered(tar(SOUND), b"0000000_0007")),
        ArchiveError,
        "which is not octal",
    ),
    (
        "xz that wants four gigabytes",
        lambda b: b.archive(declare_window(with_window(tar(SOUND), 1 << 20))),
        ArchiveError,
        "emory usage limit",
    ),
    (
        "file and then a folder in a tar",
        lambda b: b.archive(tar(SOUND, entry("d/a.c", tarfile.DIRTYPE))),
        ArchiveError,
        "'d/a.c' is a folder too",
    ),
    (
        "folder and then a file in a zip",
        lambda b: b.archive(zipped({"d/A.c/": b"", **SOUND})),
        ArchiveError,
        "'d/a.c' is a folder too",
    ),
    (
        "file and a folder below it",
        lambda b: b.archive(tar(SOUND, entry("d/a.c/e", tarfile.DIRTYPE))),
        ArchiveError,
        "'d/a.c' is a folder too",
    ),
    *(
        (
            f"backslash in a {kind}",
            lambda b, pack=pack: b.archive(pack({"d/e\\x.c": b"", **SOUND})),
            ArchiveError,
            "'d/e\\\\\\\\x.c' holds a backslash",
        )
        for kind, pack in (("tar", tar), ("zip", zipped))
    ),
    (
        "source within .git",
        lambda b: b.archive(tar({"d/.GIT/x.c": b"", **SOUND})),
        ArchiveError,
        "'d/.GIT/x.c' is within `.git`",
    ),
    ("zip member of two names", lambda b: b.archive(zip_of_two_names()), ArchiveError, "'d/b.c' has a second name"),
    (
        "zip member that is not read and has another checksum",
        lambda b: b.archive(zip_of_wrong_checksum()),
        ArchiveError,
        "b'd/b.txt' has another checksum; expected 00000000, as declared",
    ),
    (
        "zip file with the mark of a folder",
        lambda b: b.archive(zip_of_member("d/b.c", b"int b;", create_system=0, external_attr=0x10)),
        ArchiveError,
        "is a file with the mark of a folder",
    ),
    (
        "zip link by a system without links",
        lambda b: b.archive(zip_of_member("d/l.c", b"a.c", create_system=7, external_attr=0o120777 << 16)),
        ArchiveError,
        "is a link by a system with the number 7",
    ),
    ("member twice", lambda b: b.archive(tar(SOUND)[:1024] + tar(SOUND)), ArchiveError, "collide"),
    ("flipped bit", lambda b: b.archive(flipped(gzip.compress(tar(SOUND)), -5)), ArchiveError, "is broken"),
    ("page as archive", lambda b: b.archive(PAGE, "x.tar.gz"), ArchiveError, "it begins with b'<!DOCTYPE html>"),
]


@pytest.mark.parametrize(("make", "kind", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_bad_archive_is_refused_by_name_and_a_sound_source_beside_it_is_collected(
    make: Make, kind: type[SluiceError], message: str, refusal: Callable[[Make], SluiceError]
) -> None:
    check_refusal(refusal(make), kind, message)


KEPT: list[tuple[str, Make, list[str], dict[str, str]]] = [
    (
        "links in a ring",
        lambda b: b.archive(tar(SOUND, entry("d/l.h", LINK, "m.h"), entry("d/m.h", LINK, "l.h"))),
        ["a.c"],
        {"l.h": "link", "m.h": "link"},
    ),
    (
        "a link to itself and one to the top",
        lambda b: b.archive(tar(SOUND, entry("d/l.h", LINK, "l.h"), entry("d/m", LINK, "."))),
        ["a.c"],
        {"l.h": "link", "m": "link"},
    ),
    (
        "names that are not UTF-8",
        lambda b: b.archive(tar({b"d/\xe9\xff.c".decode("utf-8", "surrogateescape"): b"", "d/b.c": b""})),
        ["\\xe9\\xff.c", "b.c"],
        {},
    ),
    (
        "a name that looks like an escape",
        lambda b: b.archive(tar({b"d/\xe9.c".decode("utf-8", "surrogateescape"): b"", "d/\\xe9.txt": b""})),
        ["\\xe9.c"],
        {"\\\\xe9.txt": "other_language"},
    ),
    ("names of devices", lambda b: b.archive(tar({"d/con.c": b"", "d/aux.h": b""})), ["aux.h", "con.c"], {}),
    (
        "names that drive a terminal",
        lambda b: b.archive(tar({"d/\x1b[31m.c": b"", "d/a\nb.h": b"", "d/\u202eh.c": b""})),
        ["\\x1b[31m.c", "a\\x0ab.h", "\\xe2\\x80\\xaeh.c"],
        {},
    ),
    (
        "gzip in two members",
        lambda b: b.archive(gzip.compress(tar(SOUND)[:700]) + gzip.compress(tar(SOUND)[700:])),
        ["a.c"],
        {},
    ),
    (
        "a mode in a zip by DOS, which has none",
        lambda b: b.archive(zip_of_member("d/b.c", b"int b;", create_system=0, external_attr=0o120777 << 16)),
        ["a.c", "b.c"],
        {},
    ),
    (
        "a name that begins like bzip2",
        lambda b: b.archive(tar({"BZh9-2/a.c": b"int a;"})),
        ["a.c"],
        {},
    ),
    ("a folder named twice", lambda b: b.archive(zipped({"d/": b"", "d/e/": b"", **SOUND})), ["a.c"], {}),
    ("a comment in a zip", lambda b: b.archive(commented(zipped(SOUND))), ["a.c"], {}),
]


@pytest.mark.parametrize(("make", "files", "drops"), [row[1:] for row in KEPT], ids=[row[0] for row in KEPT])
def test_odd_archive_that_harms_nobody_is_collected(
    make: Make,
    files: list[str],
    drops: dict[str, str],
    collected: Callable[[Make], tuple[list[str], dict[str, str]]],
) -> None:
    assert collected(make) == (sorted(files), drops)
