"""Newer releases, commits and digests of pins are proposed with what their files change; nothing is written."""

import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import recipe_of
from pipeline.build.run_stage import run_stages
from pipeline.cli.main import main
from pipeline.core.change_text import is_change_path
from pipeline.core.table_names import FILES
from pipeline.pins.local_tree import tree_digest
from pipeline.pins.pins import load_pins
from pipeline.stages.collect.kinds.git import GitPin
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.update_pins import PinUpdate
from pipeline.store.store import Store
from tests.pipeline.stages.collect.conftest import Index
from tests.support.git_repository import Repository
from tests.support.paths import MADE_CORPUS


def _sdist(version: str, **texts: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, text in {"PKG-INFO": f"License-Expression: MIT\nVersion: {version}\n", **texts}.items():
            info = tarfile.TarInfo(f"demo-{version}/{name.replace('__', '.')}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return content.getvalue()


def _updates(
    capsys: pytest.CaptureFixture[str], folder: Path, entries: dict[str, dict[str, str]]
) -> tuple[int, dict[str, dict[str, Any]]]:
    pins = folder / "pins.toml"
    lines = [
        f'[[pin]]\nname = "{name}"\n' + "".join(f'{field} = "{value}"\n' for field, value in entry.items())
        for name, entry in entries.items()
    ]
    pins.write_text("\n".join(lines))
    before = pins.read_text()
    code = main(["pin", "--update", str(pins), "--store", str(folder / "store"), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert pins.read_text() == before
    return code, {update["name"]: update for update in answer}


def test_a_release_a_commit_and_a_folder_are_compared_with_what_is_pinned(
    index: Index, repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = index.add("demo_pkg-1.0.tar.gz", _sdist("1.0", a__c="int a;", b__c="int b;"))
    new = index.add("demo_pkg-1.1.tar.gz", _sdist("1.1", a__c="int a;", b__c="int c;", LICENSE="MIT License"))
    first = repository.commit(a__c="int a;")
    second = repository.commit(a__c="int b;", c__c="int c;")
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "a.c").write_text("int a;")
    pinned = tree_digest(folder)
    (folder / "b.c").write_text("int b;")
    code, found = _updates(
        capsys,
        tmp_path,
        {
            "demo": {"kind": "sdist", "project": "demo-pkg", "version": "1.0", "sha256": old}
            | {"file_name": "demo_pkg-1.0.tar.gz", "declared_license": "Apache-2.0"},
            "repository": {"kind": "git", "url": repository.url, "commit": first},
            "newest": {"kind": "git", "url": repository.url, "commit": second},
            "own": {"kind": "local", "path": "own", "digest": pinned},
        },
    )

    assert code == 0
    assert found["demo"]["fields"] == {
        "version": ["1.0", "1.1"],
        "file_name": ["demo_pkg-1.0.tar.gz", "demo_pkg-1.1.tar.gz"],
        "sha256": [old, new],
        "declared_license": ["Apache-2.0", "MIT"],
    }
    assert (found["demo"]["added"], found["demo"]["changed"]) == (["LICENSE"], ["PKG-INFO", "b.c"])
    assert found["demo"]["notes"] == ["license evidence is among them: LICENSE, PKG-INFO"]
    assert found["repository"]["fields"] == {"commit": [first, second]}
    assert (found["repository"]["added"], found["repository"]["changed"]) == (["c.c"], ["a.c"])
    assert found["newest"]["fields"] == {}
    assert found["own"]["fields"] == {"digest": [pinned, tree_digest(folder)]}
    assert found["own"]["notes"] == ["2 files; what is pinned now is not at hand, so that they were not compared"]


def test_a_pin_that_cannot_be_asked_is_said_and_the_others_are_answered(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit = repository.commit(a__c="int a;")
    code, found = _updates(
        capsys,
        tmp_path,
        {
            "gone": {"kind": "git", "url": (tmp_path / "nowhere").as_uri(), "commit": commit},
            "here": {"kind": "git", "url": repository.url, "commit": commit},
        },
    )
    assert code == 1
    assert "does not say what HEAD is" in found["gone"]["failure"]
    assert (found["here"]["failure"], found["here"]["fields"]) == ("", {})


def test_documents_of_changes_of_an_earlier_build_neither_come_nor_go(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\n".join(f"int a{number};" for number in range(30))
    repository.commit(a__c=text)
    first = repository.commit(a__c=text.replace("int a9;", "int a_number_nine;\nint and_a_tenth;"))
    params = recipe_of("history").params
    pin = GitPin(name="made", url=repository.url, commit=first, history=True, declared_license="MIT")
    store = Store(tmp_path / "store")
    with open_build(BuildRequest("made", params, (pin,), "a test"), store) as build:
        part = store.read(dict(next(run_stages(build, "collect")).parts)["made"])
    assert any(is_change_path(path) for path in part.table(FILES)["path"].to_pylist())
    repository.commit(b__c="int b;")
    pins = {"made": {"kind": "git", "url": repository.url, "commit": first}}
    _, found = _updates(capsys, tmp_path, pins)

    assert {each: found["made"][each] for each in ("added", "removed", "changed", "num_equal")} == {
        "added": ["b.c"],
        "removed": [],
        "changed": [],
        "num_equal": 1,
    }


def test_a_bundle_without_a_head_is_asked_by_the_branch_that_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pin", "--update", str(MADE_CORPUS), "--store", str(tmp_path / "store")]) == 0
    assert "loom: nothing newer" in capsys.readouterr().out
    shutil.copy(MADE_CORPUS.parent / "loom.bundle", tmp_path)
    code, found = _updates(capsys, tmp_path, {"loom": {"kind": "git", "path": "loom.bundle", "commit": "1" * 40}})
    pinned = {pin.name: pin.revision for pin in load_pins(MADE_CORPUS, SOURCE_KINDS)}
    assert (code, found["loom"]["fields"]) == (0, {"commit": ["1" * 40, pinned["loom"]]})


@pytest.mark.parametrize("num_branches", [0, 1, 2])
def test_a_repository_whose_head_names_nothing_is_asked_by_its_only_branch(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str], num_branches: int
) -> None:
    first, second = repository.commit(a__c="int a;"), repository.commit(a__c="int b;")
    repository.git("branch", "--move", "released")
    for name in ("released", "other")[num_branches:]:
        repository.git("update-ref", "-d", f"refs/heads/{name}")
    if num_branches == 2:
        repository.git("branch", "other", first)
    repository.git("symbolic-ref", "HEAD", "refs/heads/nowhere")
    pins = {
        name: {"kind": "git", "url": repository.url, "commit": at} for name, at in (("old", first), ("no", "1" * 40))
    }
    code, found = _updates(capsys, tmp_path, pins)

    failures = {
        0: ("does not say what HEAD is (it has no branch)", "does not say what HEAD is (it has no branch)"),
        1: ("", ""),
        2: ("", "has no HEAD, and no ref names what is pinned"),
    }[num_branches]
    assert code == (0 if num_branches == 1 else 1)
    for each, failure in zip(("old", "no"), failures, strict=True):
        assert failure in found[each]["failure"]
    assert found["old"]["fields"] == ({"commit": [first, second]} if num_branches == 1 else {})


@pytest.mark.parametrize(
    "arguments", [["--update", "pins.toml", "zlib"], ["--update", "pins.toml", "--license", "MIT"], []]
)
def test_it_stands_alone(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pin", *arguments, "--store", str(tmp_path)]) == 2
    assert "expected" in capsys.readouterr().err


def test_a_line_that_a_newer_file_has_and_no_build_reads_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "code.jsonl"
    lines.write_text('{"path": "a.c", "text": "int a;\\n"}\n{broken\n')
    pin = {"kind": "jsonl", "path": str(lines), "sha256": "0" * 64}
    code, found = _updates(capsys, tmp_path, {"lines": pin})

    assert code == 0
    assert any("ignored: 1 of the kind bad_line, first line 2" in note for note in found["lines"]["notes"])


def test_what_an_update_changes_is_counted_in_words_of_any_number() -> None:
    update = PinUpdate("demo", "git", {"commit": ("1", "2")}, added=("a.c",), changed=("b.c", "c.c"))
    assert update.lines == (
        'demo: commit = "2" in place of "1"',
        "demo: files: 1 new, 0 gone, 2 changed, 0 equal",
        "demo: new: a.c",
        "demo: changed: b.c, c.c",
    )


def test_an_update_names_the_first_of_many_files() -> None:
    update = PinUpdate("demo", "git", {"commit": ("1", "2")}, removed=tuple(f"{number}.c" for number in range(7)))
    assert update.lines[-1] == "demo: gone: 0.c, 1.c, 2.c, 3.c, 4.c and 2 more, which `--json` lists"


def test_an_update_shows_no_login_and_no_address_and_names_its_pin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    person = "ada.e" + "@" + "host.org"
    gone = tmp_path / person / "gone"
    digest = {"digest": "0" * 64}
    code, found = _updates(
        capsys,
        tmp_path,
        {
            "folder": {"kind": "local", "path": str(gone), **digest},
            "archive": {"kind": "archive", "path": f"{gone}.tar.gz", "sha256": "0" * 64},
            "lines": {"kind": "jsonl", "path": f"{gone}.jsonl", "sha256": "0" * 64},
            "bundle": {"kind": "git", "path": f"{gone}.bundle", "commit": "1" * 40},
            "repository": {"kind": "git", "url": gone.as_uri(), "commit": "1" * 40},
            "login": {"kind": "git", "url": "file:///nowhere?to" + "ken=Zk3q9VtR7wLx2PmN8sYd", "commit": "1" * 40},
        },
    )
    assert code == 1
    for name, update in found.items():
        assert update["failure"].startswith(f"{name}: "), update["failure"]
        assert "host.org" not in update["failure"]
        assert "Zk3q9" not in update["failure"]
