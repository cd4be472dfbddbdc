"""Origins of tokens: how many of those drawn are wrong, and the time of `which`, a whole process, on the quick slice."""

import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from pipeline.build.recipes import ROOT
from pipeline.core.table_names import DOCUMENTS
from pipeline.lineage.origins.token_places import RowName
from pipeline.lineage.origins.which import TokenOrigins
from pipeline.lineage.stored_build import StoredBuild, stored_build
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from tests.benchmarks.figure import Figure
from tests.benchmarks.pipeline.slices import build, collected
from tests.support.made.drawn_tokens import TokenOracle, drawn_tokens

NUM_TOKENS, NUM_RUNS = 10_000, 9
REACH_SECONDS = 1.0


def which() -> list[Figure]:
    """Ask for tokens drawn from all slots of the quick slice, read by the bytes of their archives; then time the command."""
    root = collected("quick")
    build(root, "quick", "--promote")
    built = stored_build(Store(root), "quick")
    oracle = TokenOracle(open_snapshot(built.store, built.snapshot_id or ""), _Archives(built).read, _texts_of(built))
    origins, places = TokenOrigins(built), list(drawn_tokens(oracle.snapshot, NUM_TOKENS, seed=21))
    found = [origins.of(*place) for place in places]
    num_wrong = sum(oracle.flaw(origin) is not None for origin in found)
    num_placeholders = sum("placeholder" in origin.changed for origin in found)
    seconds = _seconds(root, *places[0])
    return [
        Figure("which", num_wrong, f"wrong of {NUM_TOKENS} drawn tokens of quick", "0", num_wrong == 0),
        Figure("which/placeholders", num_placeholders, "of these, named as placeholders", "reported", True),
        Figure("which/cold", round(seconds, 2), "s, whole process, quick", "<= 1 s", seconds <= REACH_SECONDS),
    ]


class _Archives:
    """The members of the archives of a build, as Python's tarfile reads them."""

    def __init__(self, built: StoredBuild) -> None:
        self._built = built
        self._members = cache(self._members_of)

    def read(self, source: str, path: str) -> bytes:
        return self._members(source)[path]

    def _members_of(self, source: str) -> dict[str, bytes]:
        """Return the bytes of each member by its path below the top folder."""
        revision = self._built.part("collect", source).identity["revision"]
        with tarfile.open(self._built.store.root / "blobs" / revision) as archive:
            members = {each.name: archive.extractfile(each) for each in archive if each.isfile()}
            return {name.partition("/")[2]: file.read() for name, file in members.items() if file is not None}


def _texts_of(built: StoredBuild) -> Callable[[str, str], str]:
    """Return a function that returns the normalized text of a document of a source."""

    @cache
    def texts(source: str) -> dict[str, str]:
        table = built.part("normalize", source).table(DOCUMENTS, ["document_id", "text"]).to_pydict()
        return dict(zip(table["document_id"], table["text"], strict=True))

    return lambda source, document_id: texts(source)[document_id]


def _seconds(root: Path, row: RowName, slot: int) -> float:
    """Return the fastest of some runs: others take the machine from it."""
    command = [sys.executable, "-m", "pipeline", "which", str(row), str(slot), "--store", str(root)]
    times = []
    for _ in range(NUM_RUNS):
        started = time.perf_counter()
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        times.append(time.perf_counter() - started)
    return min(times)
