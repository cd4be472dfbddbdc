"""The pinned slices that figures are measured on: archives fetched once a run, and the texts of their files."""

import atexit
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.build.recipes import ROOT
from pipeline.build.stage_objects import parts_of
from pipeline.core.errors import SluiceError
from pipeline.stages.normalize.encodings.decode import Decoded, decode
from pipeline.store.store import Store


@cache
def collected(recipe: str) -> Path:
    """A store in which a recipe's slice is collected. Archives that the user's store holds are not fetched again."""
    root = scratch() / f"collected-{recipe}"
    copy_blobs(Path(os.environ.get("SLUICE_STORE", str(ROOT / "store"))), root)
    build(root, recipe, "--until", "collect")
    return root


@cache
def scratch() -> Path:
    """A folder that is gone when the run ends."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def copy_blobs(source: Path, target: Path) -> None:
    """Take the archives over, so that a build needs no network."""
    (target / "blobs").mkdir(parents=True, exist_ok=True)
    for path in sorted((source / "blobs").glob("*")):
        shutil.copyfile(path, target / "blobs" / path.name)


def build(root: Path, recipe: str, *more: str, watch: Any = None) -> dict[str, Any]:
    """`python -m pipeline build` with two workers; what it printed. `watch` is called with the running process."""
    command = [sys.executable, "-m", "pipeline", "build", "--recipe", recipe, "--workers", "2", "--store", str(root)]
    child = subprocess.Popen(
        [*command, "--json", *more], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    if watch is not None:
        watch(child)
    output = child.communicate()[0]
    answer: dict[str, Any] = json.loads(output)
    if child.returncode:
        raise SluiceError(f"build of {recipe}", f"exit code {child.returncode}: {answer}")
    return answer


@cache
def texts(recipe: str) -> dict[tuple[str, str], str]:
    """(source, path) -> text of every C and C++ file of a slice that can be decoded."""
    store = Store(collected(recipe))
    stage = store.ref(recipe, "collect")
    assert stage is not None
    found: dict[tuple[str, str], str] = {}
    for name, object_id in parts_of(store.read(stage)).items():
        table = store.read(object_id).table("files.parquet", ["path", "content", "is_evidence"])
        for row in table.to_pylist():
            decoded = None if row["is_evidence"] else decode(row["content"])
            if isinstance(decoded, Decoded):
                found[name, row["path"]] = decoded.text
    return found


def sample(recipe: str, num_bytes: int) -> list[str]:
    """Texts of about `num_bytes` in all, chosen by the digest of their place; none larger than 200 kB."""
    chosen, size = [], 0
    for place in sorted(texts(recipe), key=place_digest):
        text = texts(recipe)[place]
        if size < num_bytes and len(text) <= 200_000:
            chosen.append(text)
            size += len(text.encode())
    return chosen


def place_digest(place: tuple[str, str]) -> str:
    """Return the digest of source and path, by which files are drawn."""
    return hashlib.sha256("/".join(place).encode("utf-8", "surrogateescape")).hexdigest()
