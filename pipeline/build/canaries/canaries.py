"""Canaries of a build: files, archives and offenses, sent with the Params of the build through the code that judges it."""

import gc
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.build.canaries.file_canaries import CONTROLS, planted, send_archives, send_files
from pipeline.build.canaries.memory_build import MemoryBuild
from pipeline.build.canaries.offense import NUM_PLACES, Offense
from pipeline.build.canaries.offenses import CONTROL_OFFENSES, all_offenses
from pipeline.build.canaries.sound_sources import SOUND_HELD_OUT, by_own_limits, write_sound_sources
from pipeline.build.recipes import CorpusParams, with_vocabulary
from pipeline.contracts.gates import GATES, GateVerdict
from pipeline.contracts.gates_seen import CANARIES, GATES_SEEN
from pipeline.contracts.part import PartJob, PartOutput
from pipeline.core.digests import code_digest
from pipeline.core.params import canonical_json
from pipeline.pins.held_out import HeldOut
from pipeline.stages.tokenize.params import TokenizeParams
from pipeline.stages.verify.canary_counts import KINDS
from pipeline.stages.verify.smoke import ROWS_OF_CHECKS

_MAX_ROW_LENGTH = 128
"""Slots of a row of the sound build: with longer ones all of a source would be in the first row."""


@dataclass(frozen=True)
class SentCanaries:
    """Results of all canaries: whether each had its outcome, by name, and the offenses that turned each gate red.

    A control has it if nothing catches it. None says that a canary was not sent.
    """

    caught: Mapping[str, bool | None]
    gates: Mapping[str, tuple[str, ...]]


def run_canaries(job: PartJob) -> PartOutput:
    """Send all canaries, as a part; canaries.json names each, gates.json the gates that were seen red."""
    assert isinstance(job.params, CorpusParams)
    with tempfile.TemporaryDirectory(prefix="sluice-vocabulary-") as folder:
        files = {name: place.read_bytes() for name, place in job.places.items()}
        sent = send(with_vocabulary(job.params, files, Path(folder)))
    caught = json.dumps(sent.caught, indent=1, sort_keys=True).encode()
    seen = canonical_json({"code": code_digest(), "gates": sent.gates})
    return PartOutput({}, files={CANARIES: caught, GATES_SEEN: seen})


def send(params: CorpusParams) -> SentCanaries:
    """Send all canaries."""
    with tempfile.TemporaryDirectory(prefix="sluice-canaries-") as folder, _without_garbage_collection():
        root = Path(folder)
        caught = send_files(root / "files", params) | send_archives(root / "archives", params)
        of_files: dict[str, bool | None] = {name: seen is not (name in CONTROLS) for name, seen in caught.items()}
        sent = send_offenses(root / "offenses", params)
        names = {*planted(params), *_names((*all_offenses().values(), *CONTROL_OFFENSES))}
        return SentCanaries(dict(sorted({**dict.fromkeys(names), **of_files, **sent.caught}.items())), sent.gates)


def _names(offenses: Iterable[Offense]) -> frozenset[str]:
    """Return the names of what is sent: each offense once for each of its gates."""
    return frozenset(f"{gate}/{offense.name}" for offense in offenses for gate in offense.gates)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Run without walks over all objects of the process, most of which are those of libraries: canaries keep little."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def send_offenses(root: Path, params: CorpusParams) -> SentCanaries:
    """Send all offenses through the stages of a sound build. Each is caught by a gate that is green without it and red with it."""
    build = sound_build(root, params)
    sound = build.run()
    caught: dict[str, bool | None] = {}
    gates: dict[str, tuple[str, ...]] = {gate.name: () for gate in GATES}
    for offense in all_offenses().values():
        for gate, is_caught in send_offense(offense, build, sound).items():
            caught[f"{gate}/{offense.name}"] = is_caught
            gates[gate] += (offense.name,) if is_caught else ()
    for offense in CONTROL_OFFENSES:
        found = send_offense(offense, build, sound)
        caught |= {f"{gate}/{offense.name}": not is_caught for gate, is_caught in found.items()}
    return SentCanaries(caught, gates)


def send_offense(offense: Offense, build: MemoryBuild, sound: Mapping[str, GateVerdict]) -> dict[str, bool]:
    """Send one offense, and return of each of its gates whether that is green without it and counts all of it."""
    found: dict[str, bool] = {}
    for stage in sorted({GATES[gate].stage for gate in offense.gates}):
        control = build.shared_verdicts(stage, offense.control) if offense.control.is_any else sound
        red = build.verdicts(stage, offense.changes)
        of_stage = (gate for gate in offense.gates if GATES[gate].stage == stage)
        found |= {gate: _is_caught(control[gate], red[gate], offense.least) for gate in of_stage}
    return found


def _is_caught(green: GateVerdict, red: GateVerdict, least: float) -> bool:
    """Return whether a gate has passed without an offense and not with it, and its measure has moved by all that was planted."""
    return green.outcome == "passed" and not red.passed and abs(red.measured - green.measured) >= least


def sound_build(root: Path, params: CorpusParams) -> MemoryBuild:
    """Make a build of the sound sources: each has several rows, with structure, so that the proof of it is seen too."""
    pins = write_sound_sources(root)
    row_length = min(params.tokenize.row_length, _MAX_ROW_LENGTH)
    own = by_own_limits(
        params,
        held_out=HeldOut(sources=(SOUND_HELD_OUT,)),
        tokenize=TokenizeParams(vocabulary=params.tokenize.vocabulary, with_structure=True, row_length=row_length),
    )
    stand_ins = {"smoke": _sound_step, "loader": _checks, "canaries": _all_caught}
    return MemoryBuild(own, pins, root, stand_ins)


def _sound_step(job: PartJob) -> PartOutput:
    losses = [1.0] * NUM_PLACES
    return PartOutput({}, answer={"losses": losses, "snapshot_id": job.inputs["snapshot"].object_id})


def _checks(job: PartJob) -> PartOutput:
    checks = [{"num_compared": number, "num_differing": 0} for number in ROWS_OF_CHECKS]
    return PartOutput({}, answer={"checks": checks, "snapshot_id": job.inputs["snapshot"].object_id})


def _all_caught(job: PartJob) -> PartOutput:
    seen = {"code": code_digest(), "gates": {gate.name: ["one"] for gate in GATES}}
    names = {"file": "canary/{}", "archive": "canary-{}", "offense": f"{next(iter(GATES)).name}/{{}}"}
    caught = {names[kind].format(number): True for kind in KINDS for number in range(NUM_PLACES)}
    return PartOutput({}, files={CANARIES: canonical_json(caught), GATES_SEEN: canonical_json(seen)})
