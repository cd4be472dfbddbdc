"""Builds of a folder of one's own: its pins, its archive, the decisions about its files, and the command."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

from tests.pipeline.cli.conftest import Run

CODE = (
    "// SPDX-License-"
    + "Identifier: MIT\n"
    + "".join(f"int f{n}(int a{n}) {{ return a{n} * {n} + {n}; }}\n" for n in range(200))
)


def write_pins(folder: Path, *entries: str) -> str:
    path = folder / "pins.toml"
    path.write_text("\n".join(f"[[pin]]\n{entry}" for entry in entries))
    return str(path)


def local_tree(folder: Path, run: Run, **files: str) -> str:
    for name, content in files.items():
        (folder / "code").mkdir(exist_ok=True)
        (folder / "code" / name.replace("_c", ".c")).write_text(content)
    _, entry, _ = run("pin", "mine", str(folder / "code"), "--license", "MIT")
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in entry.items())


def build(run: Run, pins: str, *more: str) -> tuple[int, Any, str]:
    return run("build", "--recipe", "tiny", "--corpus", "mine", "--pins", pins, "--workers", "1", *more)


def make_archive(path: Path, member: str, content: bytes) -> Path:
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo(member)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return path


def write_decisions(folder: Path, *entries: str) -> str:
    path = folder / "decisions.toml"
    who = 'person = "A. Reader"\nreason = "The author said so."\n'
    path.write_text("\n".join(f"[[decision]]\n{entry}\n{who}" for entry in entries))
    return str(path)
