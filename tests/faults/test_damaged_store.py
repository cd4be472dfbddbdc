"""Damages of every kind of stored file: fsck sees each, and no promotion passes over one in what it depends on."""

import hashlib
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.build.promotion import promote
from pipeline.build.run_stage import StageResult
from pipeline.core.errors import SluiceError
from pipeline.stages.enrich.compiler.result_cache import ResultCache
from pipeline.store.fsck import fsck
from pipeline.store.store import Store

SEED = 16
"""Draws which file of a kind is damaged, and where."""
NO_CONTENT = ("locks/", "tmp/")
MAY_BE_DELETED = ("rejected/", "units/")
"""Refused bytes and a cache: nothing needs them."""
Damage = Callable[[Path, random.Random], object]


def _flip(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def _truncate(path: Path, draw: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: draw.randrange(path.stat().st_size)])


def _append(path: Path, draw: random.Random) -> None:
    path.write_bytes(path.read_bytes() + draw.choice([b"\n", b" ", b"\0", b"{}\n", b"\xff" * 9]))


DAMAGES: dict[str, Damage] = {
    "flip": _flip,
    "truncate": _truncate,
    "append": _append,
    "empty": lambda path, _: path.write_bytes(b""),
    "delete": lambda path, _: path.unlink(),
}
SWAP = "swap"


@pytest.fixture
def filled(tiny_store: Store, tmp_path: Path) -> Store:
    """A store that has every kind of file."""
    shutil.copytree(tiny_store.root, tmp_path / "store")
    store = Store(tmp_path / "store")
    for content in (b"one", b"two"):
        sha256 = hashlib.sha256(content).hexdigest()
        store.put_blob([content], sha256, "a test")
        store.name_blob(f"git/{content.decode()}", sha256)
        ResultCache(store.root / "units", "unit").write(content.decode(), {"reads": {content.decode(): sha256}})
        with pytest.raises(SluiceError):
            store.put_blob([content + b"!"], sha256, "a test")
    store.log_withdrawal("nobody/has/this", "a test")
    store.log_withdrawal("nobody/has/this", "a test", is_undone=True)
    assert fsck(store) == []
    return store


def kinds(store: Store) -> dict[str, list[Path]]:
    """The files of a store by kind: the path with ids replaced."""
    found: dict[str, list[Path]] = {}
    for path in sorted(path for path in store.root.rglob("*") if path.is_file()):
        place = path.relative_to(store.root).as_posix()
        if not place.startswith(NO_CONTENT):
            kind = re.sub(r"(?<=/)(git/\w+|[0-9a-f]{40,64})", "*", place)
            found.setdefault(kind, []).append(path)
    return found


def cases(store: Store) -> Iterator[tuple[str, str]]:
    """Every kind with every other damage, in turns, so that kinds of one table or log have all; with SLUICE_DAMAGES, with all."""
    step = 1 if os.environ.get("SLUICE_DAMAGES") else 2
    for number, kind in enumerate(kinds(store)):
        for damage in (*DAMAGES, SWAP)[number % step :: step]:
            if not (damage == "delete" and kind.startswith(MAY_BE_DELETED)):
                yield kind, damage


def depended_on(store: Store, results: list[StageResult]) -> set[str]:
    """The kinds and places of files that the promotion of a snapshot depends on."""
    waiting, found = [results[-1].object_id], set()
    while waiting:
        path = store.read(waiting.pop()).path
        found |= {each.relative_to(store.root).as_posix() for each in path.iterdir()}
        waiting += store.read(path.name).manifest.inputs.values()
    logs = {f"log/{name}.{suffix}" for name in ("promotions", "withdrawals") for suffix in ("jsonl", "head")}
    return found | logs | {"format", "refs/tiny/candidate", f"verified/{results[-1].snapshot_id}"}


def survivors(
    store: Store, results: list[StageResult], chosen: list[tuple[str, str]], draw: random.Random
) -> list[str]:
    """Damage one file after the other, and restore it; return what fsck or promote did not see."""
    files, needed, unseen = kinds(store), depended_on(store, results), []
    for kind, damage in chosen:
        path = draw.choice(files[kind])
        others = [other for paths in (files[kind], *files.values()) for other in paths]
        other = next(other for other in others if other.read_bytes() != path.read_bytes())
        before = {each: each.read_bytes() for each in (path, other)}
        if damage == SWAP:
            path.write_bytes(before[other])
            other.write_bytes(before[path])
        else:
            DAMAGES[damage](path, draw)
        if path.exists() and path.read_bytes() == before[path]:
            continue
        name = f"{damage} {path.relative_to(store.root)}"
        if not fsck(store):
            unseen.append(f"fsck: {name}")
        touched = {path, other} if damage == SWAP else {path}
        if {each.relative_to(store.root).as_posix() for each in touched} & needed and _is_promoted(store.root):
            unseen.append(f"promote: {name}")
        for each, content in before.items():
            each.write_bytes(content)
    assert fsck(store) == []
    return unseen


def _is_promoted(root: Path) -> bool:
    try:
        promote(Store(root), "tiny")
    except SluiceError:
        return False
    return True


@pytest.mark.slow  # every kind with every other damage: some 200
def test_damages_of_every_kind_of_file_are_seen(filled: Store, tiny_results: list[StageResult]) -> None:
    assert survivors(filled, tiny_results, list(cases(filled)), random.Random(SEED)) == []
