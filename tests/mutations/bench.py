"""Bench: a copy of a built store on which one mutation is run, and the signals that went red on it.

The store is built once, by `prepare`; a mutation makes anew what it concerns and reuses the rest. Parts run in this process, so
that what is planted here is planted in them. The trainer runs in processes of its own: its answers are those of the store that
was built, unless a mutation asks for the real ones.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.canaries.canaries import send
from pipeline.build.promotion import promote
from pipeline.build.recipes import TINY, CorpusParams, pins_of
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.contracts.gates import GateVerdict
from pipeline.contracts.gates_seen import CANARIES, GATES_SEEN, GatesSeen
from pipeline.core.errors import SluiceError
from pipeline.pins.pins import SourcePin
from pipeline.stages.stages import STAGES
from pipeline.store.fsck import fsck
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store
from tests.mutations.plant import NotPlantedError, among_canaries
from tests.support.paths import ROOT

CORPUS = "tiny"
_ANSWERS = "answers.json"
_BYTES = b"bytes of an archive, as received"


@dataclass
class Bench:
    """One mutation's copy of the store, the arguments of its build, and what went red."""

    base: Path
    folder: Path
    since: str = "verify"
    """The first stage that is made anew; empty if every earlier result is reused."""
    params: CorpusParams = TINY.params
    pins: tuple[SourcePin, ...] = field(default_factory=lambda: pins_of(TINY))
    num_workers: int = 1
    has_real_trainer: bool = False
    red: list[str] = field(default_factory=list)
    verdicts: list[GateVerdict] = field(default_factory=list)
    """Verdicts of the last build, and in `made` for each of its stages whether nothing was made anew."""
    made: dict[str, bool] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    """Answers of the trainer, by its command, where they are not those that it gave when the store was built."""

    def __post_init__(self) -> None:
        shutil.copytree(self.base / "store", self.folder / "store")
        self.store = Store(self.folder / "store")

    def say(self, signal: str, detail: object = "") -> None:
        """Report that a signal went red."""
        self.red.append(f"{signal} {' '.join(str(detail).split())[:300]}".strip())

    def attempt(self, signal: str, action: Callable[[], Any]) -> Any:
        """Run an action; an error that a user would see is the signal, any other a crash."""
        try:
            return action()
        except NotPlantedError:
            raise
        except SluiceError as error:
            self.say(signal, error)
        except Exception as error:
            self.say(f"crash:{signal.rpartition(':')[2]}", f"{type(error).__name__}: {error}")
        return None

    def build(self, until_live: bool = True) -> str | None:
        """Build from `since` on and promote; verdicts, canaries, errors and refusals go red. Returns the snapshot's id."""
        self._forget_keys()
        results: list[StageResult] = []
        self.attempt("error:build", lambda: self._run(results))
        for result in results:
            self._read_verdicts(result)
        snapshot_id = results[-1].snapshot_id if results else None
        if until_live and snapshot_id is not None and not results[-1].blocked:
            self.promote(snapshot_id)
        return snapshot_id

    def send_canaries(self) -> None:
        """Send the canaries apart, as a build that was blocked before its last stage does not."""
        if "verify" not in self.made:
            with among_canaries():
                sent = self.attempt("error:canaries", lambda: send(self.params))
            if sent is not None:
                self._read_canaries(sent.caught, [name for name, seen in sent.gates.items() if not seen])

    def promote(self, snapshot_id: str | None = None) -> None:
        """Promote the candidate, or a snapshot by its id."""
        with self._trainer():
            self.attempt("promote", lambda: promote(self.store, CORPUS, snapshot_id or "candidate"))

    def promote_elsewhere(self, snapshot_id: str) -> None:
        """Promote a snapshot in a process of its own, in which nothing is planted."""
        line = [sys.executable, "-m", "pipeline", "promote", "--corpus", CORPUS, "--store", str(self.store.root)]
        done = subprocess.run(
            [*line, "--to", snapshot_id, "--json"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode:
            self.say(
                "promote", done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"
            )

    def fsck(self) -> None:
        """Check the whole store."""
        for problem in self.attempt("fsck", lambda: fsck(self.store)) or []:
            self.say("fsck", problem)

    def run_tests(self, *names: str) -> None:
        """Run test files in this process, in which the fault is planted, on the store; a file with a failure goes red."""
        os.environ["SLUICE_TINY_STORE"] = str(self.store.root)
        for name in names:
            code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", str(ROOT / name)])
            if code == pytest.ExitCode.TESTS_FAILED:
                self.say(f"test:{name}")
            elif code != pytest.ExitCode.OK:
                self.say(f"crash:pytest-{int(code)}", name)

    @property
    def live_id(self) -> str:
        """The snapshot that the store was built with."""
        return str(json.loads((self.base / _ANSWERS).read_bytes())["snapshot_id"])

    def objects(self) -> list[StoredObject]:
        """Read every object of the store, sorted by kind, the name of its part and id."""
        paths = self.store.root.glob("objects/*/*/*/manifest.json")
        found = [self.store.read(path.parent.name) for path in paths]
        return sorted(
            found, key=lambda each: (each.manifest.kind, str(each.manifest.identity.get("name")), each.object_id)
        )

    def _run(self, results: list[StageResult]) -> None:
        request = BuildRequest(CORPUS, self.params, self.pins, "a mutation", self.num_workers, offline=True)
        with self._trainer(), open_build(request, self.store) as build:
            results.extend(run_stages(build))

    def _forget_keys(self) -> None:
        """Forget the work of the stages from `since` on, so that it is done again."""
        anew = STAGES.names[STAGES.names.index(self.since) :] if self.since else ()
        kinds = {stored.object_id: stored.manifest.kind for stored in self.objects()}
        of_anew = {part.kind for name in anew for part in STAGES[name].parts}
        for path in (self.store.root / "keys").iterdir():
            if kinds.get(self.store.known(path.name) or "") in of_anew:
                path.unlink()

    def _read_verdicts(self, result: StageResult) -> None:
        self.made[result.stage] = result.unchanged
        for verdict in result.verdicts:
            self.verdicts.append(verdict)
            if not verdict.passed:
                self.say(f"gate:{verdict.gate}", verdict.sentence)
        if "canaries" in result.parts:
            stored = self.store.read(result.parts["canaries"])
            self._read_canaries(stored.json(CANARIES), GatesSeen(**stored.json(GATES_SEEN)).missing())

    def _read_canaries(self, caught: Mapping[str, bool], unseen: Sequence[str]) -> None:
        for name, is_caught in caught.items():
            if not is_caught:
                self.say(f"canary:{name}")
        for name in unseen:
            self.say(f"unseen:{name}")

    @contextmanager
    def _trainer(self) -> Any:
        """Have the trainer's processes answer as they did when the store was built, or as `answers` says."""
        if self.has_real_trainer:
            yield
            return
        known = json.loads((self.base / _ANSWERS).read_bytes())["trainer"] | self.answers
        run = subprocess.run

        def answered(line: Any, *given: Any, **named: Any) -> Any:
            command = _trainer_command(line)
            if command not in known:
                return run(line, *given, **named)
            asked = str(line[list(line).index("--snapshot") + 1]) if "--snapshot" in line else self.live_id
            return subprocess.CompletedProcess(line, 0, json.dumps(known[command]).replace(self.live_id, asked), "")

        subprocess.run = answered  # type: ignore[assignment]
        try:
            yield
        finally:
            subprocess.run = run


def prepare(base: Path) -> None:
    """Build the store that mutations copy, in this process, and keep what the trainer answers."""
    answers: dict[str, Any] = {}
    run = subprocess.run

    def recorded(line: Any, *given: Any, **named: Any) -> Any:
        done, command = run(line, *given, **named), _trainer_command(line)
        if command:
            answers[command] = json.loads(done.stdout)
        return done

    subprocess.run = recorded  # type: ignore[assignment]
    try:
        store = Store(base / "store")
        with open_build(BuildRequest(CORPUS, TINY.params, pins_of(TINY), "mutations"), store) as build:
            results = list(run_stages(build))
        results[-1].refuse_blocked(CORPUS)
        snapshot_id = str(results[-1].snapshot_id)
        promote(store, CORPUS, snapshot_id)
    finally:
        subprocess.run = run
    _add_other_kinds_of_files(store)
    (base / _ANSWERS).write_text(json.dumps({"snapshot_id": snapshot_id, "trainer": answers}))


def _add_other_kinds_of_files(store: Store) -> None:
    """Add what a store of downloaded sources holds and one of local trees does not."""
    import hashlib

    sha256 = hashlib.sha256(_BYTES).hexdigest()
    store.put_blob([_BYTES], sha256, "an archive")
    store.name_blob("git/" + "0" * 40, sha256)
    store.log_withdrawal("lantern/src/none.c", "a mutation's store")
    store.log_withdrawal("lantern/src/none.c", "taken back", is_undone=True)


def _trainer_command(line: Any) -> str:
    """Return the command of a line that runs the trainer, or the empty string."""
    words = [str(word) for word in line] if isinstance(line, list | tuple) else []
    return words[words.index("trainer") + 1] if "trainer" in words[:-1] else ""


def as_json(value: Mapping[str, Any]) -> bytes:
    """Return JSON as it is written into a mutated file."""
    return json.dumps(value, sort_keys=True).encode()
