"""Listings name what bytes hold, without the code that collect reads them with."""

import hashlib
import io
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import ArchiveError
from pipeline.stages.collect.archives.unpack import unpack
from pipeline.stages.collect.contents import ReadOptions
from pipeline.stages.collect.listing import list_archive, list_commit, list_folder, list_lines

NAMES = ["src/a.c", "src/deep/er/b.h", "LICENSE", "päth/ü.c", "x" * 60 + "/" + "y" * 120 + ".c", "z/" * 60 + "long.c"]
PART = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=130
)


def names(path: Path) -> list[str]:
    return sorted(listed.name.decode("utf-8", "surrogateescape") for listed in list_archive(path, 10**6))


def write_tar(path: Path, files: list[str], mode: str = "w", layout: int = tarfile.PAX_FORMAT) -> None:
    with tarfile.open(path, mode, format=layout) as archive:
        for number, name in enumerate(files):
            info = tarfile.TarInfo(name)
            info.size = 700 * number
            archive.addfile(info, io.BytesIO(b"x" * info.size))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
@pytest.mark.parametrize("layout", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_a_tar_is_listed_in_every_compression_and_layout(tmp_path: Path, mode: str, layout: int) -> None:
    write_tar(tmp_path / "archive", NAMES, mode, layout)

    assert names(tmp_path / "archive") == sorted(NAMES)


def test_a_member_is_named_as_its_archive_has_it(tmp_path: Path) -> None:
    write_tar(tmp_path / "tar", ["./d-1.0//src/a.cpp", "d-1.0/b.h"])
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("src/a.cpp", b"")
        archive.writestr("d/./b.h", b"")

    found = [{each.name: each.member for each in list_archive(tmp_path / kind, 10**6)} for kind in ("tar", "zip")]

    assert found[0] == {b"src/a.cpp": b"./d-1.0//src/a.cpp", b"b.h": b"d-1.0/b.h"}
    assert found[1] == {b"src/a.cpp": b"src/a.cpp", b"d/b.h": b"d/./b.h"}


def test_a_member_with_two_names_is_refused_and_listed_by_the_last(tmp_path: Path) -> None:
    """Readers disagree about which of a GNU and a pax header counts: were it read, the audit would see that names differ."""
    long_name = tarfile.TarInfo("././@LongLink")
    long_name.type, long_name.size = tarfile.GNUTYPE_LONGNAME, 6
    write_tar(tmp_path / "pax", ["d/" + "b" * 120 + ".c"])
    content = long_name.tobuf(tarfile.GNU_FORMAT) + b"d/z.c".ljust(512, b"\0") + (tmp_path / "pax").read_bytes()
    (tmp_path / "archive").write_bytes(content)

    assert names(tmp_path / "archive") == ["b" * 120 + ".c"]
    with pytest.raises(ArchiveError, match="two extended headers"):
        unpack(tmp_path / "archive", ReadOptions("demo"))


def test_a_listing_knows_the_content_of_files_and_not_of_links(tmp_path: Path) -> None:
    content = b"int a;\n" * 100
    with zipfile.ZipFile(tmp_path / "zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("d/a.c", content)
        with archive.open("d/streamed.c", "w") as member:
            member.write(content)
        for name, mode in (("d/l.c", stat.S_IFLNK), ("d/mode.c", stat.S_IFREG | 0o755), ("d/special.c", stat.S_IFIFO)):
            linked = zipfile.ZipInfo(name)
            linked.external_attr = mode << 16
            archive.writestr(linked, content)
    with tarfile.open(tmp_path / "tar", "w:gz") as packed:
        info = tarfile.TarInfo("d/a.c")
        info.size = len(content)
        packed.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("d/l.c")
        link.type, link.linkname = tarfile.SYMTYPE, "a.c"
        packed.addfile(link)

    blob_id = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    for name, expected in (
        (
            "zip",
            [("a.c", blob_id), ("l.c", None), ("mode.c", blob_id), ("special.c", None), ("streamed.c", blob_id)],
        ),
        ("tar", [("a.c", blob_id), ("l.c", None)]),
    ):
        found = list(list_archive(tmp_path / name, 10**6))
        assert sorted((listed.name.decode(), listed.git_blob_id) for listed in found) == expected
        assert {(listed.git_blob_id, listed.num_bytes) for listed in found} == {(blob_id, len(content)), (None, None)}


def test_ustar_prefixes_are_joined(tmp_path: Path) -> None:
    long = "a" * 80 + "/" + "b" * 80 + ".c"
    write_tar(tmp_path / "archive", ["top.c", long], layout=tarfile.USTAR_FORMAT)

    assert names(tmp_path / "archive") == [long, "top.c"]


@pytest.mark.parametrize("name", ["BZFlag-2", "BZh9", "\x1f\x8b", "PK\x03\x05"])
def test_a_name_that_begins_like_a_container_is_a_name(tmp_path: Path, name: str) -> None:
    write_tar(tmp_path / "archive", [f"{name}/a.c", f"{name}/b.c"], layout=tarfile.GNU_FORMAT)

    assert names(tmp_path / "archive") == ["a.c", "b.c"]


def test_a_file_that_is_a_folder_too_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr("d/a.c/", "")
        archive.writestr("d/a.c", "int a;")

    with pytest.raises(ArchiveError, match=r"b'd/a\.c' is a file and a folder"):
        names(tmp_path / "archive")


def test_folders_are_left_out_links_are_listed_and_the_top_folder_is_removed(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "archive", "w") as archive:
        for name, kind in {"top": tarfile.DIRTYPE, "top/a.c": tarfile.REGTYPE, "top/b.c": tarfile.SYMTYPE}.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "a.c" if kind == tarfile.SYMTYPE else ""
            archive.addfile(info)

    assert names(tmp_path / "archive") == ["a.c", "b.c"]


@pytest.mark.parametrize("is_64", [False, True])
def test_a_zip_is_listed_by_its_directory(tmp_path: Path, is_64: bool) -> None:
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr("folder/", "")
        for name in NAMES:
            with archive.open(name, "w", force_zip64=is_64) as member:
                member.write(b"int a;")

    assert names(tmp_path / "archive") == sorted(NAMES)


@given(
    st.lists(
        st.lists(PART.filter(lambda part: part not in (".", "..")), min_size=2, max_size=4), min_size=2, max_size=6
    )
)
def test_a_listing_agrees_with_the_standard_library(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[str]]
) -> None:
    files = sorted({f"{number}/" + "/".join(part) for number, part in enumerate(parts)})
    path = tmp_path_factory.mktemp("listing") / "archive"
    write_tar(path, files)

    assert names(path) == files


def test_a_commit_is_listed_with_links_and_odd_names(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        settings = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main")
        done = subprocess.run(["git", *settings, *arguments], cwd=tmp_path / "r", check=True, capture_output=True)
        return done.stdout.decode().strip()

    (tmp_path / "r" / "src").mkdir(parents=True)
    git("init", "--quiet")
    for name in ("src/a.c", "b \n.c", "é.h"):
        (tmp_path / "r" / name).write_text(name)
    (tmp_path / "r" / "link.c").symlink_to("src/a.c")
    git("add", "-A")
    git("commit", "--quiet", "-m", "all")
    commit = git("rev-parse", "HEAD")
    git("repack", "-adq")
    (pack,) = (tmp_path / "r").glob(".git/objects/pack/*.pack")

    found = sorted(listed.name.decode() for listed in list_commit(pack, commit))
    assert found == sorted(["src/a.c", "b \n.c", "é.h", "link.c"])


def test_a_folder_is_listed_without_git_and_without_following_links(tmp_path: Path) -> None:
    for name in ("a.c", "deep/b.c", ".git/config", "deep/.git"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "loop").symlink_to(tmp_path)

    assert sorted(listed.name for listed in list_folder(tmp_path)) == [b"a.c", b"deep/b.c", b"loop"]


def test_lines_are_listed_by_path_or_by_number(tmp_path: Path) -> None:
    lines = ['{"p": "a.c", "l": "MIT"}', "", "no json", '{"q": 1}', '{"p": "b.c"}', "[1]"]
    (tmp_path / "lines").write_text("\n".join(lines))

    found = [tuple(listed)[:4] for listed in list_lines(tmp_path / "lines", "p", "t", "l")]
    assert found == [
        (b"a.c", "line 1", b"line 1", False),
        (b"a.c.license", None, b"line 1", True),
        (b"line 3", None, None, False),
        (b"line 4", None, None, False),
        (b"b.c", "line 5", b"line 5", False),
        (b"line 6", None, None, False),
    ]
