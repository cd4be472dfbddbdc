"""Digest of a local tree: the bytes, names and modes that it covers, and the files that are refused."""

import hashlib
import os
from pathlib import Path
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import SourceError
from pipeline.pins.local_tree import encoded_name, printable_path, tree_digest, tree_entries
from pipeline.pins.selection import Selection


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "deep" / "b.cpp").write_bytes(b"int b;\n")
    (root / "a.h").write_bytes(b"int a();\n")
    (root / "README").write_bytes(b"words")
    return root


def test_the_digest_is_the_documented_one(tree: Path) -> None:
    lines = b""
    for mode, path, content in [
        ("100644", "README", b"words"),
        ("100644", "a.h", b"int a();\n"),
        ("100644", "src/deep/b.cpp", b"int b;\n"),
    ]:
        lines += b"\0".join([mode.encode(), path.encode(), hashlib.sha256(content).hexdigest().encode(), b""])
    assert tree_digest(tree) == hashlib.sha256(lines).hexdigest()


def test_a_link_counts_by_its_target_and_a_special_file_by_its_type(tmp_path: Path) -> None:
    root = tmp_path / "links"
    root.mkdir()
    (root / "link.h").symlink_to("nowhere/\n.h")
    os.mkfifo(root / "pipe")
    lines = b""
    for mode, path, content in [("120000", "link.h", b"nowhere/\\x0a.h"), ("010000", "pipe", b"")]:
        lines += b"\0".join([mode.encode(), path.encode(), hashlib.sha256(content).hexdigest().encode(), b""])
    assert tree_digest(root) == hashlib.sha256(lines).hexdigest()


def test_a_link_that_is_added_removed_or_turned_moves_the_digest(tree: Path) -> None:
    digests = [tree_digest(tree)]
    for target in ("a.h", "README"):
        (tree / "link.h").unlink(missing_ok=True)
        (tree / "link.h").symlink_to(target)
        digests.append(tree_digest(tree))
    (tree / "link.h").unlink()
    (tree / "link.h").write_bytes(b"README")
    assert len({*digests, tree_digest(tree)}) == 4


def test_the_digest_moves_with_bytes_names_and_the_executable_bit_only(tree: Path) -> None:
    before = tree_digest(tree)
    os.utime(tree / "a.h", (0, 0))
    (tree / "empty").mkdir()
    (tree / "a.h").chmod(0o600)
    assert tree_digest(tree) == before
    (tree / "a.h").chmod(0o755)
    executable = tree_digest(tree)
    (tree / "a.h").chmod(0o644)
    (tree / "a.h").write_bytes(b"int a(int);\n")
    changed = tree_digest(tree)
    (tree / "a.h").rename(tree / "c.h")
    assert len({before, executable, changed, tree_digest(tree)}) == 4


def test_a_name_with_a_line_end_cannot_name_two_files(tmp_path: Path) -> None:
    digests = set()
    for number, names in enumerate([["a.h", "b.h"], ["a.h\nb.h"]]):
        root = tmp_path / str(number)
        root.mkdir()
        for name in names:
            (root / name).write_bytes(b"")
        digests.add(tree_digest(root))
    assert len(digests) == 2


def test_only_a_git_folder_is_passed_over(tree: Path) -> None:
    before = tree_digest(tree)
    for folder in (tree / ".git", tree / "src" / ".git"):
        folder.mkdir()
        (folder / "index").write_bytes(b"changes all the time")
    assert tree_digest(tree) == before
    (tree / ".venv").mkdir()
    (tree / ".venv" / "x.h").write_bytes(b"")
    assert tree_digest(tree) != before
    assert tree_digest(tree, Selection(exclude=(".venv/**",))) == before


def test_links_and_special_files_are_listed_but_never_followed(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.h").write_bytes(b"secret")
    (tree / "folder").symlink_to(tmp_path / "outside")
    (tree / "file.h").symlink_to(tmp_path / "outside" / "secret.h")
    os.mkfifo(tree / "pipe.h")
    skipped = {entry.path: entry.skipped for entry in tree_entries(tree, Selection()) if entry.skipped}
    assert skipped == {"folder": "link", "file.h": "link", "pipe.h": "special"}
    before = tree_digest(tree)
    (tmp_path / "outside" / "secret.h").write_bytes(b"another secret")
    assert tree_digest(tree) == before


def test_a_name_that_is_not_utf_8_is_listed_so_that_it_can_be_printed(tree: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tree) + b"/caf\xe9.h"))).write_bytes(b"")
    paths = [entry.path for entry in tree_entries(tree, Selection())]
    assert "caf\\xe9.h" in paths
    assert paths == sorted(paths)


def test_what_is_not_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="nowhere: is not there"):
        tree_digest(tmp_path / "nowhere")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_named(tree: Path) -> None:
    (tree / "a.h").chmod(0)
    with pytest.raises(SourceError, match=r"a\.h: cannot be read \(Permission denied\)"):
        tree_digest(tree)


def test_a_file_that_became_a_link_is_not_followed(tree: Path) -> None:
    entries = [entry for entry in tree_entries(tree, Selection()) if entry.path == "a.h"]
    (tree / "a.h").unlink()
    (tree / "a.h").symlink_to(tree / "README")
    with pytest.raises(SourceError, match=r"a\.h: cannot be read"):
        entries[0].read()


@given(st.binary(max_size=20).filter(lambda name: b"\0" not in name))
def test_printable_paths_never_meet_and_never_hold_surrogates(raw: bytes) -> None:
    printed = printable_path(raw.decode("utf-8", "surrogateescape"))
    undone = printed.replace("\\\\", "\udcff").encode("utf-8", "surrogatepass")
    parts = undone.split(b"\\x")
    restored = parts[0] + b"".join(bytes.fromhex(part[:2].decode()) + part[2:] for part in parts[1:])
    assert restored.replace("\udcff".encode("utf-8", "surrogatepass"), b"\\") == raw
    printed.encode()
    assert encoded_name(printed) == quote_from_bytes(raw)
