"""Campaign: every mutation in a process of its own, forked from one that has built the store and loaded all code."""

import hashlib
import json
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.mutations.bench import Bench, prepare
from tests.mutations.mutation import Kind, Mutation, Outcome, judge
from tests.mutations.of_trainer import train_base
from tests.mutations.plant import NotPlantedError
from tests.support.paths import ROOT

TIMEOUT_SECONDS = 240.0
_POLL_SECONDS = 0.02
_CODE = ("pipeline", "trainer", "kernels", "tests/mutations")


@dataclass
class Campaign:
    """Outcomes by name, kept in a file, so that a campaign that was interrupted continues. Other code starts anew."""

    state: Path | None = None
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._code = digest_of_code()
        if self.state is not None and self.state.exists():
            kept = json.loads(self.state.read_bytes())
            if kept["code"] == self._code:
                self.outcomes = {each["name"]: Outcome.of_json(each) for each in kept["outcomes"]}

    def run(self, mutations: Sequence[Mutation], num_at_once: int, say: Callable[[str], None]) -> list[Outcome]:
        """Run what has no outcome yet, and return the outcomes of all in the given order."""
        left = [mutation for mutation in mutations if mutation.name not in self.outcomes]
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="sluice-mutations-") as folder:
            if left:
                say(f"building the store that {len(left)} mutations copy")
                _prepare_all(left, Path(folder))
                started = time.monotonic()
            for number, outcome in enumerate(_run_all(left, Path(folder), num_at_once), 1):
                self.outcomes[outcome.name] = outcome
                self._keep()
                rate = number / (time.monotonic() - started)
                say(
                    f"{number}/{len(left)}  {rate * 60:.0f} a minute, {(len(left) - number) / rate:.0f} s left  "
                    f"{outcome.status:<17} {outcome.name}"
                )
        return [self.outcomes[mutation.name] for mutation in mutations]

    def _keep(self) -> None:
        if self.state is None:
            return
        self.state.parent.mkdir(parents=True, exist_ok=True)
        content = {"code": self._code, "outcomes": [each.as_json() for each in self.outcomes.values()]}
        part = self.state.with_suffix(".part")
        part.write_text(json.dumps(content, indent=1))
        part.replace(self.state)


def _prepare_all(mutations: Sequence[Mutation], folder: Path) -> None:
    """Build the store, in this process, and train on another, in a process of its own: torch's threads survive no fork."""
    prepare(folder)
    if {Kind.TRAINER, Kind.CERTIFICATE} & {mutation.kind for mutation in mutations}:
        (folder / "trained").mkdir()
        process = multiprocessing.get_context("fork").Process(target=_train_silently, args=(folder / "trained",))
        process.start()
        process.join()
        if process.exitcode:
            raise RuntimeError(f"the training that mutations resume ended with {process.exitcode}")


def _train_silently(folder: Path) -> None:
    _silence()
    train_base(folder)


def _silence() -> None:
    """Send what the code logs nowhere: it is not the campaign's."""
    with open(os.devnull, "w", encoding="utf-8") as silent:
        os.dup2(silent.fileno(), 1)
        os.dup2(silent.fileno(), 2)


def digest_of_code() -> str:
    """Return a digest of the code that mutations alter and of the mutations."""
    hasher = hashlib.sha256()
    for path in sorted(path for folder in _CODE for path in (ROOT / folder).rglob("*.py")):
        hasher.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return hasher.hexdigest()


def _run_all(mutations: Sequence[Mutation], base: Path, num_at_once: int) -> Iterator[Outcome]:
    waiting, running = list(mutations), dict[str, "_Running"]()
    while waiting or running:
        while waiting and len(running) < num_at_once:
            mutation = waiting.pop(0)
            running[mutation.name] = _Running(mutation, base)
        done = [each for each in running.values() if each.is_done]
        for each in done:
            del running[each.mutation.name]
            yield each.outcome()
        time.sleep(0 if done else _POLL_SECONDS)


class _Running:
    """A mutation that runs in its own process."""

    def __init__(self, mutation: Mutation, base: Path) -> None:
        self.mutation = mutation
        self._started = time.monotonic()
        self._folder = tempfile.TemporaryDirectory(prefix="sluice-mutation-")
        self._red = Path(self._folder.name) / "red.json"
        context = multiprocessing.get_context("fork")
        self._process: BaseProcess = context.Process(target=_run_one, args=(mutation, base, self._red))
        sys.stdout.flush()
        sys.stderr.flush()
        self._process.start()

    @property
    def is_done(self) -> bool:
        """True once the process has ended or was ended for its time."""
        if self._process.is_alive() and self._seconds > TIMEOUT_SECONDS:
            self._process.kill()
        return not self._process.is_alive()

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def outcome(self) -> Outcome:
        """Read and judge what went red."""
        self._process.join()
        red = json.loads(self._red.read_bytes()) if self._red.exists() else [f"crash:exit-{self._process.exitcode}"]
        self._folder.cleanup()
        return judge(self.mutation, red, self._seconds)


def _run_one(mutation: Mutation, base: Path, red: Path) -> None:
    """Run a mutation and write what went red."""
    _silence()
    bench = Bench(base, red.parent)
    try:
        mutation.run(bench)
    except NotPlantedError as error:
        bench.say("not-planted", error)
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        bench.say(f"crash:{type(error).__name__}", f"{error} ({Path(place.filename).name}:{place.lineno})")
    part = red.with_suffix(".part")
    part.write_text(json.dumps(bench.red))
    part.replace(red)
