"""An archive is a tar as Python's library writes it, and no byte around a content can be another one."""

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.core.errors import DamagedError, MissingError, StoreError
from pipeline.store.bundles.archive_members import (
    ArchiveReader,
    ArchiveWriter,
    compared,
    file_chunks,
    opened_archive,
    written_archive,
)

MEMBERS = {"first.json": b"{}", f"{'a' * 64}/{'b' * 60}.txt": b"x" * 1000, "empty": b""}


def archive(members: dict[str, bytes] = MEMBERS) -> bytes:
    file = io.BytesIO()
    writer = ArchiveWriter(file)
    for name, content in members.items():
        writer.add(name, len(content), file_chunks(io.BytesIO(content)))
    writer.finish()
    return file.getvalue()


def read(written: bytes) -> dict[str, bytes]:
    reader = ArchiveReader(io.BytesIO(written), "archive x", "Copy it again.")
    first, content = reader.first()
    found = {first: content}
    found |= {name: b"".join(reader.member(name, len(MEMBERS[name]))) for name in list(MEMBERS)[1:]}
    reader.finish()
    return found


def test_an_archive_is_the_tar_that_the_library_writes() -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in MEMBERS.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(content), 0o644, 0
            tar.addfile(member, io.BytesIO(content))

    assert archive() == file.getvalue()
    assert read(archive()) == MEMBERS


def test_a_file_of_more_than_eight_gibibytes_has_a_header_that_the_library_reads() -> None:
    written = bytearray()

    class Kept:
        def write(self, content: bytes) -> None:
            written.extend(content)

    with pytest.raises(DamagedError, match="it has 3 bytes; expected 9000000000"):
        ArchiveWriter(Kept()).add("large", 9_000_000_000, [b"abc"])
    assert tarfile.TarInfo.frombuf(bytes(written[:512]), "utf-8", "strict").size == 9_000_000_000


def test_a_file_in_no_folder_is_named_itself_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "x.bundle"
    with (
        pytest.raises(MissingError, match=r"^file x.bundle: there is no folder .*nowhere; expected"),
        written_archive(target),
    ):
        pass
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to("pipe")
    for place, kind in ((pipe, "a pipe or a device"), (tmp_path, "a folder"), (tmp_path / "link", "a link")):
        with pytest.raises(StoreError, match=f"it is {kind}, which would be replaced"), written_archive(place):
            pass
    with pytest.raises(StoreError, match=r"^bundle pipe: it is no regular file; "), opened_archive(pipe, "bundle pipe"):
        pass


def test_no_byte_around_a_content_can_be_another() -> None:
    written = archive()
    contents = [range(at, at + len(each)) for each in MEMBERS.values() if each for at in [written.index(each)]]
    for place in range(0, len(written), 3):
        changed = written[:place] + bytes([written[place] ^ 1]) + written[place + 1 :]
        if any(place in content for content in contents):
            assert read(changed) != MEMBERS
        else:
            with pytest.raises(DamagedError, match=r"^archive x: .*; expected .*Copy it again\."):
                read(changed)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda written: written[:-600], "it is cut off in its end"),
        (lambda written: written[:1600], f"it is cut off in {'a' * 64}/{'b' * 60}.txt"),
        (lambda written: written[:100], "it is cut off in its first header"),
        (lambda written: written + b"\0", "something follows its last member"),
        (lambda written: b"no tar" * 200, "it does not begin as an archive"),
        (lambda written: archive({**MEMBERS, "more": b"1"}), "something follows its last member"),
        (lambda written: archive({"first.json": b"{}", "../outside": b"x"}), "it has the member '../outside'"),
    ],
    ids=["a cut end", "a cut member", "a cut header", "a byte more", "no tar", "a member more", "another member"],
)
def test_another_archive_is_refused_by_what_is_wrong(spoil: Callable[[bytes], bytes], message: str) -> None:
    with pytest.raises(DamagedError) as refused:
        read(spoil(archive()))
    assert message in str(refused.value)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE])
def test_a_link_a_folder_or_a_device_in_a_members_place_is_refused(kind: bytes) -> None:
    member = tarfile.TarInfo("empty")
    member.type, member.linkname, member.mode, member.mtime = kind, "/etc/passwd", 0o644, 0
    header = member.tobuf(tarfile.USTAR_FORMAT)
    written = archive()
    place = written.rindex(b"empty")
    with pytest.raises(DamagedError, match=r"the header of 'empty/?' is not as an export|it has the member 'empty/'"):
        read(written[:place] + header + written[place + 512 :])


def test_bytes_are_compared_at_their_end() -> None:
    with pytest.raises(DamagedError, match=r"file x: sha256 .*; expected 111111111111, as written"):
        list(compared([b"a", b"b"], "1" * 64, "file x", "Copy it again."))
