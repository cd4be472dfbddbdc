"""Damages of logs, refs, verdicts and keys: fsck sees each, and no build or promotion makes a withdrawn file live.

Each is one flipped byte, cut, deleted file, altered letter or newline in a copy of one store, in which a source was withdrawn.
"""

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from pipeline.build.promotion import promote
from pipeline.core.errors import SluiceError
from pipeline.store.fsck import fsck
from pipeline.store.store import Store
from tests.benchmarks.figure import Figure
from tests.benchmarks.store.gc_beside import memory
from tests.benchmarks.store.two_snapshots import CORPUS, TwoSnapshots, two_snapshots

SEED = 19
NUM_DAMAGES = 300
KINDS = {"logs": ("log/*", "ends"), "refs": ("refs/*/*",), "verdicts": ("verdicts/*",), "keys": ("keys/*",)}
BUILT_EVERY = {"logs": 10, "refs": 30, "verdicts": 100, "keys": 100}
"""Damages of a kind after which the corpus is built and promoted again: every so many. The rollback is tried after each."""
Damage = Callable[[bytes, random.Random], bytes | None]


def logs() -> list[Figure]:
    """Measure how many of 300 damages of each kind fsck does not see, and how often a withdrawn file became live."""
    with memory() as folder:
        whole = two_snapshots(folder / "whole")
        found = [(kind, damaged(whole, kind, NUM_DAMAGES, BUILT_EVERY[kind])) for kind in KINDS]
    return [
        figure
        for kind, counts in found
        for figure in (
            Figure(f"logs/{kind}", counts["seen"], f"of {NUM_DAMAGES} seen by fsck", "all", counts["unseen"] == 0),
            Figure(
                f"logs/{kind}/revived",
                counts["revived"],
                "times that a withdrawn file became live",
                "0",
                counts["revived"] == 0,
                "rollbacks tried, and builds",
                counts["tries"],
            ),
        )
    ]


def damaged(whole: TwoSnapshots, kind: str, num_damages: int, built_every: int) -> Counter[str]:
    """Damage files of a kind, one at a time, and count what fsck saw and what a rollback and a build then made live.

    With `built_every` 0, nothing is built.
    """
    draw, counts = random.Random(f"{SEED} {kind}"), Counter[str]()
    cases = _cases(whole.root, kind, draw)
    for number in range(num_damages):
        path, content = next(cases)
        before = path.read_bytes()
        path.unlink() if content is None else path.write_bytes(content)
        counts["seen" if fsck(Store(whole.root)) else "unseen"] += 1
        is_built = built_every > 0 and number % built_every == 0
        copy = replace(whole, root=shutil.copytree(whole.root, whole.root.with_name("tried")))
        counts["revived"] += _is_revived(copy, is_built)
        counts["tries"] += 1 + is_built
        shutil.rmtree(copy.root)
        path.write_bytes(before)
    return counts


def _is_revived(copy: TwoSnapshots, is_built: bool) -> bool:
    """Return whether the first snapshot, or another than the one without what was withdrawn, becomes live."""
    attempts: list[Callable[[], str]] = [lambda: promote(Store(copy.root), CORPUS, copy.first, "a rollback").new]
    attempts += [copy.rebuilt] if is_built else []
    for attempt in attempts:
        try:
            if attempt() != copy.second:
                return True
        except SluiceError:
            continue
    return False


def _cases(root: Path, kind: str, draw: random.Random) -> Iterator[tuple[Path, bytes | None]]:
    """Draw files and what is written in their place, None to delete them; never what a file holds already."""
    paths = sorted(path for place in KINDS[kind] for path in root.glob(place) if path.is_file())
    while True:
        for damage in DAMAGES:
            path = draw.choice([path for path in paths if path.stat().st_size])
            content = damage(path.read_bytes(), draw)
            if content != path.read_bytes():
                yield path, content


def _flipped(content: bytes, draw: random.Random) -> bytes:
    return _with(content, draw.randrange(len(content)), lambda byte: byte ^ 1 << draw.randrange(8))


def _altered(content: bytes, draw: random.Random) -> bytes:
    letters = [index for index, byte in enumerate(content) if chr(byte).isalnum()]
    return _with(content, draw.choice(letters), lambda byte: draw.choice(sorted({*b"0123456789abcdefxyz"} - {byte})))


def _newline(content: bytes, draw: random.Random) -> bytes:
    """Put a newline somewhere, in the place of a byte or between two, or take one away."""
    index, ends = draw.randrange(len(content) + 1), [at for at, byte in enumerate(content) if byte == 10]
    at = draw.choice(ends) if ends else index
    return draw.choice(
        [
            content[:index] + b"\n" + content[index:],
            content[:index] + b"\n" + content[index + 1 :],
            content[:at] + content[at + 1 :],
        ]
    )


def _with(content: bytes, index: int, change: Callable[[int], int]) -> bytes:
    return content[:index] + bytes([change(content[index])]) + content[index + 1 :]


DAMAGES: tuple[Damage, ...] = (
    _flipped,
    lambda content, draw: content[: draw.randrange(len(content))],
    lambda content, draw: None,
    _altered,
    _newline,
)
