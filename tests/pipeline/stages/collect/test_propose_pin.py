"""Proposals of pins: local files and folders with the digest of their bytes; a name that is not listed is refused."""

import hashlib
import io
import json
import re
import shlex
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.pins.pins import load_pins, pin_toml
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.propose_pin import propose_local
from pipeline.stages.collect.repositories.bundle_heads import bundle_heads, only_head
from pipeline.store.store import Store
from tests.support.git_repository import Repository
from tests.support.paths import MADE_CORPUS

LOOM = MADE_CORPUS.parent / "loom.bundle"
TWO_BRANCHES = f"# v2 git bundle\n{'1' * 40} refs/heads/a\n{'2' * 40} refs/heads/b\n\nPACK".encode()


def _zip_bomb() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.c", bytes(3_000_000))
    return content.getvalue()


def _tar_with_link() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        link = tarfile.TarInfo("d/x.c")
        link.type, link.linkname = tarfile.SYMTYPE, "../../etc/passwd"
        archive.addfile(link)
    return content.getvalue()


def test_a_name_that_is_not_listed_is_one_line_with_those_that_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pin", "nowhere", "--store", str(tmp_path), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["error"] == "PinError"
    assert "grpcio" in answer["message"]


def test_a_folder_an_archive_and_lines_of_ones_own_are_pinned_as_they_are_now(tmp_path: Path) -> None:
    folder = tmp_path / "a \u2028 \U0001f600 \\ folder"
    folder.mkdir()
    (folder / "a.c").write_bytes(b"int a;")
    archive = tmp_path / "own.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(folder / "a.c", "a.c")
    lines = tmp_path / "own.jsonl"
    lines.write_text('{"path": "a.c", "text": ""}\n')
    pins = tmp_path / "pins.toml"
    places = {"folder": folder, "archive": archive, "lines": lines, "bundle": LOOM}
    pins.write_text("\n".join(pin_toml(propose_local(name, path, "MIT")) for name, path in places.items()))
    found = {pin.name: pin for pin in load_pins(pins, SOURCE_KINDS)}
    assert {name: pin.kind for name, pin in found.items()} == {
        "folder": "local",
        "archive": "archive",
        "lines": "jsonl",
        "bundle": "git",
    }
    assert found["bundle"].revision == next(
        pin.revision for pin in load_pins(MADE_CORPUS, SOURCE_KINDS) if pin.name == "loom"
    )
    assert found["archive"].revision == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert tomllib.loads(pins.read_text())["pin"][0]["path"] == str(folder)


def _pin(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["pin", *arguments])
    shown = capsys.readouterr()
    return code, " ".join((shown.out + shown.err).split())


def test_a_folder_says_what_is_in_it_and_which_links_are_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, where = tmp_path / "own", ("--store", str(tmp_path / "store"))
    folder.mkdir()
    (folder / "a.c").write_bytes(b"int a;" * 1_000)
    (folder / "b.c").symlink_to(f"/home/{'ada'}/AKIA{'QWERTYUIOPASDFGH'}/b.c")
    code, shown = _pin(capsys, "own", str(folder), *where)
    assert (code, "1 source files, 0.01 MB." in shown) == (0, True)
    target = "<redacted-path-1>/<redacted-secret-1>/b.c"
    assert f"ignored: 1 of the kind link, first b.c -> {target}; none is followed: copy what they lead to" in shown
    assert "No license text and no `--license`" in shown
    assert "No license text" not in _pin(capsys, "own", str(folder), "--license", "MIT", *where)[1]
    assert (
        "pin own: its license is empty; expected an SPDX" in _pin(capsys, "own", str(folder), "--license=", *where)[1]
    )
    refused = _pin(capsys, "own", str(folder), "--license", "GPL-3.0-only", *where)[1]
    assert "By the license policy, GPL-3.0-only is refused: a file that states no other license is left out" in refused


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty", None, ("it holds no source file (it is empty)", "Check its kind")),
        ("empty.zip", b"PK\x05\x06" + bytes(18), ("it holds no source file (it is empty)", "Check its kind")),
        (
            "link.tar",
            _tar_with_link(),
            ("link.tar: 'd/x.c' is a link to '../../etc/passwd'; expected", "without that member"),
        ),
        (
            "own.tar.gz",
            b"\x1f\x8b cut off",
            ("own.tar.gz: is broken", "Pin a folder, a tar or zip archive, a git bundle"),
        ),
        ("bomb.zip", _zip_bomb(), ("bomb.zip: 3000000 bytes are declared in ", "packed ones; expected at most 200")),
        (
            "two.bundle",
            TWO_BRANCHES,
            ('kind = "git", path = "two.bundle"', f"refs/heads/a {'1' * 40}, refs/heads/b {'2' * 40}."),
        ),
        ("own.c", b"int a;", ("is broken", "Pin a folder, a tar or zip archive")),
        ("own.jsonl", b"no JSON\n", ("it holds no source file (1 bad_line", "the fields of its lines")),
    ],
)
def test_what_a_build_could_not_read_is_refused_at_once(
    name: str, content: bytes | None, words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.mkdir() if content is None else path.write_bytes(content)
    code, shown = _pin(capsys, "own", str(path), "--license", "MIT", "--store", str(tmp_path / "store"))
    assert code == 1
    assert all(each in shown for each in words), shown
    assert "[[pin]]" not in shown


def test_a_bundle_that_is_cut_off_is_tried_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.bundle"
    path.write_bytes(LOOM.read_bytes()[:3_000])
    code, shown = _pin(capsys, "own", str(path), "--license", "MIT", "--store", str(tmp_path / "store"))
    assert code == 1
    assert re.search(
        r"cut\.bundle could not be fetched \(attempt 1: [^;]*(; error: [^;]*)*\); .* Make the bundle again", shown
    )
    assert "attempt 2" not in shown


def test_a_bundle_is_read_also_where_the_store_has_its_commit_and_nothing_of_it_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, name = Store(tmp_path / "store"), f"git/{only_head(bundle_heads(LOOM) or {})}"
    for each in (name, f"{name}.history"):
        store.put_blob([b"another pack"], hashlib.sha256(b"another pack").hexdigest(), "a test")
        store.name_blob(each, hashlib.sha256(b"another pack").hexdigest())
    (tmp_path / "cut.bundle").write_bytes(LOOM.read_bytes()[:3_000])
    where = ("--license", "MIT", "--store", str(store.root))
    code, shown = _pin(capsys, "own", str(tmp_path / "cut.bundle"), *where)
    assert (code, "cut.bundle could not be fetched" in shown) == (1, True), shown
    assert _pin(capsys, "own", str(LOOM), *where)[0] == 0
    assert [path.name for path in (store.root / "blobs").iterdir()] == [hashlib.sha256(b"another pack").hexdigest()]


def test_a_bundle_with_a_changed_byte_is_called_damaged_and_not_without_its_commit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, whole = tmp_path / "changed.bundle", LOOM.read_bytes()
    start, tried = whole.index(b"PACK") + 12, []
    for place in range(start, start + 40, 4):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        code, shown = _pin(capsys, "own", str(path), "--license", "MIT", "--store", str(tmp_path / "store"))
        tried.append(shown)
        assert (code, "does not offer" in shown, "Make the bundle again" in shown) == (1, False, True), shown
    assert any("is damaged: it lists commit" in shown for shown in tried)


def test_a_license_that_is_none_is_refused_with_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, shown = _pin(capsys, "own", str(tmp_path), "--license", "MIT License", "--store", str(tmp_path / "store"))
    assert code == 1
    assert "expected an SPDX expression" in shown


def test_a_repository_is_pinned_as_its_files_with_the_commands_that_pin_its_commit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    repository = Repository(tmp_path / "my code")
    repository.folder.mkdir()
    repository.git("init", "--quiet")
    commit, where = repository.commit(a__c="int a;" * 100), ("--store", str(tmp_path / "store"))
    code, text = _pin(capsys, "own", str(repository.folder), *where)

    assert (code, 'kind = "local"' in text) == (0, True)
    make, pin = re.findall("Run `(git .*?)`, then `python -m pipeline (.*?)`", text)[0]
    subprocess.run(make, shell=True, check=True, capture_output=True)
    assert main([*shlex.split(pin), "--json", *where]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "name": "own",
        "kind": "git",
        "path": str(tmp_path / "own.bundle"),
        "commit": commit,
        "declared_license": "NOASSERTION",
    }
