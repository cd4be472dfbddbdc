"""Proposals of pins: local files and folders with the digest of their bytes; a name that is not listed is refused."""

import hashlib
import json
import tarfile
import tomllib
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.pins.pins import load_pins, pin_toml
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.propose_pin import propose_local


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
    places = {"folder": folder, "archive": archive, "lines": lines}
    pins.write_text("\n".join(pin_toml(propose_local(name, path, "MIT")) for name, path in places.items()))
    found = {pin.name: pin for pin in load_pins(pins, SOURCE_KINDS)}
    assert {name: pin.kind for name, pin in found.items()} == {
        "folder": "local",
        "archive": "archive",
        "lines": "jsonl",
    }
    assert found["archive"].revision == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert tomllib.loads(pins.read_text())["pin"][0]["path"] == str(folder)
