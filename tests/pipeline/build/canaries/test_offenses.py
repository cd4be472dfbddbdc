"""Every gate is seen red in every build: by rule over GATES, a gate that cannot fail is found."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.build import build_context
from pipeline.build.build import BuildRequest, open_build
from pipeline.build.canaries import canaries
from pipeline.build.canaries.canaries import send_offense, send_offenses, sound_build
from pipeline.build.canaries.memory_build import Alteration, Changes, MemoryBuild
from pipeline.build.canaries.offense import Offense, at_places, places
from pipeline.build.canaries.offenses import CONTROL_OFFENSES, OFFENSES, all_offenses
from pipeline.build.canaries.sound_sources import SOUND
from pipeline.build.recipes import TINY, CorpusParams, pins_of, recipe_of
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.contracts.gates import GATES, NONE, Gate, GateVerdict
from pipeline.contracts.stage_report import StageReport
from pipeline.core.errors import StageError
from pipeline.core.params import Params
from pipeline.core.settings.overrides import setting
from pipeline.stages.normalize.params import DropBands
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store
from tests.support.shorten_stage import FEW_ARE_LONG, SHORTEN


@dataclass(frozen=True)
class Sound:
    """A sound build, and the verdicts of its gates."""

    build: MemoryBuild
    verdicts: Mapping[str, GateVerdict]

    def seen_red_by(self, gate: str) -> list[str]:
        """Send the offenses of a gate, and return those that turn it red."""
        sent = [offense for offense in all_offenses().values() if gate in offense.gates]
        return [offense.name for offense in sent if send_offense(offense, self.build, self.verdicts)[gate]]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    build = sound_build(tmp_path_factory.mktemp("sound") / "sources", TINY.params)
    return Sound(build, build.run())


@pytest.fixture(autouse=True)
def forget_shared_verdicts(request: pytest.FixtureRequest, sound: Sound) -> Iterator[None]:
    """Keep verdicts of controls that other code has judged from other tests: they share a build."""
    yield
    if "monkeypatch" in request.fixturenames:
        sound.build.shared.clear()


def test_the_sound_build_passes_every_gate_that_blocks(sound: Sound) -> None:
    assert [verdict.sentence for verdict in sound.verdicts.values() if verdict.blocking and not verdict.passed] == []
    assert set(sound.verdicts) == set(GATES.names)


@pytest.mark.parametrize("gate", GATES.names)
def test_every_offense_of_a_gate_turns_it_red(gate: str, sound: Sound) -> None:
    expected = [offense.name for offense in all_offenses().values() if gate in offense.gates]

    assert sound.seen_red_by(gate) == expected
    assert expected


@pytest.mark.parametrize("gate", GATES.names)
def test_a_verdict_that_is_always_passed_is_found(gate: str, sound: Sound, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Gate.judge

    def lenient(self: Gate, measures: Mapping[str, float], params: Params) -> GateVerdict:
        verdict = judge(self, measures, params)
        return replace(verdict, passed=True) if self.name == gate else verdict

    monkeypatch.setattr(Gate, "judge", lenient)

    assert sound.seen_red_by(gate) == []


@pytest.mark.parametrize("gate", GATES.names)
def test_a_measure_that_is_reported_as_a_constant_is_found(
    gate: str, sound: Sound, monkeypatch: pytest.MonkeyPatch
) -> None:
    measures = StageReport.gate_measures.fget  # type: ignore[attr-defined]
    constant = {GATES[gate].measure: GATES[gate].limit.passing}
    monkeypatch.setattr(StageReport, "gate_measures", property(lambda self: {**measures(self), **constant}))

    assert sound.seen_red_by(gate) == []


OF_COUNTS = [gate.name for gate in GATES if gate.limit == NONE]


@pytest.mark.parametrize("gate", OF_COUNTS)
def test_a_measure_that_counts_only_the_first_is_found(
    gate: str, sound: Sound, monkeypatch: pytest.MonkeyPatch
) -> None:
    measures = StageReport.gate_measures.fget  # type: ignore[attr-defined]

    def of_the_first(self: StageReport) -> dict[str, float]:
        return {name: min(1, value) if name == GATES[gate].measure else value for name, value in measures(self).items()}

    monkeypatch.setattr(StageReport, "gate_measures", property(of_the_first))

    assert sound.seen_red_by(gate) == []


def test_an_offense_of_which_a_gate_counts_less_than_was_planted_is_missed(sound: Sound) -> None:
    offense = OFFENSES["wrong_id"]

    assert send_offense(offense, sound.build, sound.verdicts) == {"round_trip_is_exact": True}
    more = replace(offense, least=offense.least + 1)
    assert send_offense(more, sound.build, sound.verdicts) == {"round_trip_is_exact": False}


@pytest.mark.parametrize(
    ("count", "expected"), [(0, []), (1, [0]), (2, [0, 1]), (3, [0, 1, 2]), (4, [0, 2, 3]), (9, [0, 4, 8])]
)
def test_places_are_the_first_the_middle_and_the_last(count: int, expected: list[int]) -> None:
    assert places(count) == expected
    marked = at_places(lambda _: "first", lambda _: "last")(["none"] * count)
    assert [index for index, mark in enumerate(marked) if mark != "none"] == expected
    assert not marked or marked[-1] == "last"


@pytest.mark.parametrize(
    ("stage", "name"), [(stage.name, kind.measure) for stage in STAGES for kind in stage.parts if kind.measure]
)
def test_a_measure_function_that_is_not_run_again_is_found(
    stage: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each function is made to return what it returned at first: for the sound source, which is sent first."""
    module, function = name.split(":")
    measure, reports = getattr(__import__(module, fromlist=[function]), function), {}

    def first(job, output):
        return reports.setdefault(job.name, measure(job, output))

    monkeypatch.setattr(f"{module}.{function}", first)
    build = sound_build(tmp_path / "sources", TINY.params)
    verdicts = build.run()

    of_stage = [each for each in all_offenses().values() if any(GATES[gate].stage == stage for gate in each.gates)]
    assert not all(all(send_offense(each, build, verdicts).values()) for each in of_stage)


def test_a_report_that_is_not_compared_with_the_tables_is_found(sound: Sound, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_context, "_num_misreported", lambda reported, found: 0)

    for stage in ("collect", "normalize"):
        offense = all_offenses()[f"drop_without_row_in_{stage}"]
        assert send_offense(offense, sound.build, sound.verdicts) == {f"no_row_lost_in_{stage}": False}


def test_an_offense_that_the_gate_is_red_without_proves_nothing(sound: Sound) -> None:
    offense = OFFENSES["ids_that_never_occur"]

    assert send_offense(offense, sound.build, sound.verdicts) == {"vocabulary_is_used": True}
    assert send_offense(replace(offense, control=offense.changes), sound.build, sound.verdicts) == {
        "vocabulary_is_used": False
    }


def test_no_limit_of_a_recipe_leaves_sound_sources_out(tmp_path: Path) -> None:
    names = (
        "normalize.filters.min_num_bytes=601",
        "collect.max_members=1",
        "normalize.duplicates.min_containment=0.51",
    )
    layers = (setting(name) for name in (*names, "enrich.syntax.max_num_bytes=1000"))

    assert False not in send_offenses(tmp_path, recipe_of("tiny", *layers).params).caught.values()


def test_controls_are_caught_by_what_takes_every_gate_for_red(
    sound: Sound, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = [send_offense(each, sound.build, sound.verdicts) for each in CONTROL_OFFENSES]
    assert found == [{"every_pin_verified": False}] * 2

    monkeypatch.setattr(canaries, "_is_caught", lambda green, red, least: True)
    sent = send_offenses(tmp_path, TINY.params).caught
    missed = [name for name, is_sound in sent.items() if not is_sound]
    assert missed == [f"every_pin_verified/{each.name}" for each in CONTROL_OFFENSES]


@pytest.mark.parametrize(
    "changes",
    [
        {"tokenize": {"row_length": 16}},
        {"tokenize": {"row_length": 65_536}},
        {"tokenize": {"packing": "single_doc"}},
        {"verify": {"min_bytes_per_token": 16, "min_trained_fraction": 1, "max_unused_vocabulary_fraction": 0}},
        {"enrich": {"max_degraded_fraction": 0}},
        {"normalize": {"drop_bands": dict.fromkeys(DropBands.model_fields, 0) | {"min_num_files": 1}}},
    ],
    ids=str,
)
def test_offenses_are_caught_with_any_limits(changes: Mapping[str, dict], tmp_path: Path) -> None:
    params = TINY.params
    for stage, fields in changes.items():
        found = params.of_stage(stage)
        known = {name: value for name, value in fields.items() if name in type(found).model_fields}
        if "drop_bands" in known:
            bands = {name: value for name, value in known["drop_bands"].items() if name in DropBands.model_fields}
            known = {"drop_bands": DropBands(**bands)}
        params = params.model_copy(update={stage: type(found).model_validate(dict(found) | known)})
    sent = send_offenses(tmp_path / "sent", params)

    assert [name for name, caught in sent.caught.items() if not caught] == []


def test_a_build_in_which_no_gate_can_fail_is_an_error(copied: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Gate.judge
    monkeypatch.setattr(Gate, "judge", lambda self, *given: replace(judge(self, *given), passed=True))

    with pytest.raises(StageError, match="no offense turns canaries_are_caught or every_gate_was_seen_red red"):
        rebuild(copied)


LATE = Gate("lately_registered", "collect", "num_failed_sources", NONE, "A gate of a program.")


def test_a_gate_that_a_program_registers_needs_an_offense_of_the_program(tmp_path: Path) -> None:
    offense = Offense("lately_registered_too", (LATE.name,), OFFENSES["source_of_other_bytes"].changes)
    with GATES.registered(LATE):
        assert send_offenses(tmp_path / "one", TINY.params).gates[LATE.name] == ()
        with OFFENSES.registered(offense):
            sent = send_offenses(tmp_path / "two", TINY.params)
    assert sent.gates[LATE.name] == (offense.name,)
    assert sent.caught[f"{LATE.name}/{offense.name}"]


def test_the_gate_of_a_stage_that_a_program_registers_is_seen_red_too(tmp_path: Path) -> None:
    long = Changes((Alteration("shorten", SOUND, report=lambda found: replace(found, dropped={"too_large": 1_001})),))
    offense = Offense("many_long_documents", (FEW_ARE_LONG.name,), long)
    with STAGES.registered(SHORTEN, before="enrich"), GATES.registered(FEW_ARE_LONG), OFFENSES.registered(offense):
        sent = send_offenses(tmp_path / "sent", TINY.params)

    assert sent.gates[FEW_ARE_LONG.name] == (offense.name,)
    assert [name for name, caught in sent.caught.items() if not caught] == []


def rebuild(store: Store, params: CorpusParams = TINY.params, num_workers: int = 1) -> StageResult:
    with open_build(BuildRequest("tiny", params, pins_of(TINY), "a test", num_workers), store) as build:
        return list(run_stages(build))[-1]


def test_a_build_that_changes_nothing_is_stopped_by_a_gate_that_cannot_fail(
    copied: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rebuild(copied).unchanged
    judge, names = Gate.judge, ("chunks_conserve_bytes", "round_trip_is_exact", "trainer_takes_a_step")

    def lenient(self: Gate, *given: Any) -> GateVerdict:
        return replace(judge(self, *given), passed=True) if self.name in names else judge(self, *given)

    monkeypatch.setattr(Gate, "judge", lenient)
    result = rebuild(copied)

    blocked = {verdict.gate for verdict in result.verdicts if verdict.blocking and not verdict.passed}
    assert blocked == {"canaries_are_caught", "every_gate_was_seen_red"}
    assert f"Gates that no offense turned red: {', '.join(names)}." in [note.text for note in result.notes]


def test_a_build_with_workers_sends_the_offense_of_a_program(copied: Store) -> None:
    offense = Offense("lately_registered_too", (LATE.name,), OFFENSES["source_of_other_bytes"].changes)
    params = TINY.params.model_copy(
        update={"verify": TINY.params.verify.model_copy(update={"min_bytes_per_token": 1.4})}
    )
    with GATES.registered(LATE):
        blocked = rebuild(copied, num_workers=2)
        with OFFENSES.registered(offense):
            passed = rebuild(copied, params, num_workers=2)

    assert blocked.blocked
    assert f"Gates that no offense turned red: {LATE.name}." in [note.text for note in blocked.notes]
    assert not passed.blocked


def test_the_offenses_that_each_gate_was_seen_red_by_are_stored(copied: Store) -> None:
    result = rebuild(copied)
    seen = copied.read(result.parts["canaries"]).json("gates.json")

    assert list(seen["gates"]) == sorted(GATES.names)
    assert all(seen["gates"].values())
    assert json.dumps(seen["code"])
