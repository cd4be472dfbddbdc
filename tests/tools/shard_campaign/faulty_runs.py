"""Faulty runs: builds of a source in processes of their own, what their parts wrote down, and what is compared of their stores."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.build.stage_objects import parts_of
from pipeline.lineage.stored_build import stored_build
from pipeline.store.fsck import fsck
from pipeline.store.refs import LAST
from pipeline.store.store import Store
from tests.support.paths import ROOT
from tests.tools.shard_campaign.faulty_parts import FAULT, FAULTY, FOLDER, LOG

CORPUS = SOURCE = "made"
PartName = tuple[str, str]
"""Part function and name of a part."""
_POLL_SECONDS = 0.005


@dataclass(frozen=True)
class Ended:
    """End of a build: its exit code, its answer, what it said last, and the parts that began."""

    code: int
    answer: Mapping[str, Any]
    said: str
    began: Counter[PartName]

    @property
    def snapshot_id(self) -> str | None:
        """The candidate, or None."""
        return self.answer.get("snapshot_id")


@dataclass
class FaultyRuns:
    """Builds of one recipe in one store. `folder` is empty at first and takes the store and the log of the parts."""

    recipe: Path
    folder: Path
    until: str = "verify"
    num_workers: int = 2
    variables: Mapping[str, str] = field(default_factory=dict)
    store: Path | None = None

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)

    def run(
        self,
        fault: str = "",
        faulty: str = "",
        is_time: Callable[[], bool] = lambda: False,
        before: Callable[[], object] = lambda: None,
    ) -> Ended:
        """Build once. `fault` and `faulty` are for `faulty_parts`; all processes are killed once `is_time()` holds."""
        earlier = self.noted()
        line = [sys.executable, "-m", "tests.tools.shard_campaign.faulty_build", "build", "--recipe", str(self.recipe)]
        line += ["--corpus", CORPUS, "--workers", str(self.num_workers), "--until", self.until]
        line += ["--store", str(self.path), "--json", "--no-report", "--quiet"]
        given = {FOLDER: str(self.folder), FAULT: fault, FAULTY: faulty, **self.variables}
        with (self.folder / "answer").open("wb") as answer, (self.folder / "said").open("wb") as said:
            build = subprocess.Popen(
                line,
                cwd=ROOT,
                stdout=answer,
                stderr=said,
                env={**os.environ, **given},
                start_new_session=True,
                preexec_fn=before,
            )
            while build.poll() is None:
                if is_time():
                    os.killpg(build.pid, signal.SIGKILL)
                time.sleep(_POLL_SECONDS)
        text, words = ((self.folder / name).read_text(errors="replace").strip() for name in ("answer", "said"))
        found = json.loads(text) if text.startswith("{") and build.returncode == 0 else {}
        return Ended(build.returncode, found, f"{text} {words}"[-1500:], self.noted() - earlier)

    def noted(self, what: str = "begins") -> Counter[PartName]:
        """Count how often each part began, or ended its work."""
        log = self.folder / LOG
        lines = log.read_text().splitlines() if log.exists() else []
        rows = (line.split("\t") for line in lines if line.count("\t") == 4)
        return Counter((function, name) for noted, function, name, *_ in rows if noted == what)

    @property
    def damage(self) -> list[str]:
        """Damage that `fsck` finds in the store."""
        return fsck(Store(self.path)) if self.path.exists() else []

    @property
    def path(self) -> Path:
        """The store."""
        return self.store or self.folder / "store"

    def shard_ids(self) -> dict[str, list[str]]:
        """Return the ids of the shards of the source, by stage."""
        store = Store(self.path)
        reached = stored_build(store, CORPUS, LAST).stages.items()
        made = {stage: parts_of(stored).get(SOURCE) for stage, stored in reached}
        return {stage: [each.object_id for each in store.read(part).shards] for stage, part in made.items() if part}


def is_sentence(said: str, *words: str) -> str:
    """Return what is wrong with what a build said: a traceback, or a word that is missing; empty if nothing is."""
    if "Traceback" in said:
        return f"a traceback: {said[-400:]}"
    missing = [word for word in words if word not in said]
    return f"no word of {missing}: {said[-400:]}" if missing else ""
