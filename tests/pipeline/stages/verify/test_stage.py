"""Every gate about tokens and rows fails when its offense is planted in a stored table; the stage says what it made."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest

from pipeline.build.canaries.canaries import sound_build
from pipeline.build.canaries.memory_build import NO_CHANGES, Changes, MemoryBuild
from pipeline.build.canaries.offense import altered
from pipeline.build.canaries.sound_sources import SOUND, SOUND_HELD_OUT
from pipeline.build.canaries.verify_token_offenses import _as_training
from pipeline.build.recipes import TINY
from pipeline.contracts.gates import GATES
from pipeline.contracts.gates_seen import CANARIES, GATES_SEEN
from pipeline.contracts.part import PartJob, PartOutput, StageOutput
from pipeline.core.errors import SourceError
from pipeline.core.records import Split
from pipeline.formats.snapshot_json import SNAPSHOT_FILE
from pipeline.pins.held_out import HeldOut
from pipeline.stages.tokenize.vocabulary import load_vocabulary
from pipeline.stages.verify.params import VerifyParams
from pipeline.stages.verify.stage import _held_out_fields, _held_out_measures, prove_source
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store

PACKED, TRAINING, TOKENS = "packed_train.parquet", "rows_train.arrow", "tokens.parquet"


class Planted:
    """A stored object with one table replaced."""

    def __init__(self, stored: Any, name: str, table: pa.Table | None) -> None:
        self.stored, self.name, self.planted = stored, name, table

    def table(self, name: str, columns: Any = None) -> pa.Table:
        return self.planted if name == self.name and self.planted is not None else self.stored.table(name, columns)

    def file(self, name: str) -> Path:
        return Path(self.stored.file(name))


def prove(store: Store, name: str = "", plant: Callable[[pa.Table], pa.Table] | None = None) -> dict[str, float]:
    snapshot = open_snapshot(store, store.ref("tiny", "live") or "")
    source = max(snapshot.sources, key=lambda source: source.num_rows_train)
    rows, enrich, vocabulary = (
        store.read(object_id)
        for object_id in (
            source.rows,
            store.read(store.ref("tiny", "enrich") or "").manifest.inputs[f"part/{source.name}"],
            snapshot.stored.manifest.inputs["vocabulary"],
        )
    )
    planted = Planted(rows, name, plant(rows.table(name)) if plant else None)
    identity = {"vocabulary": load_vocabulary("tiny-1024").as_json(), "row_length": snapshot.row_length}
    identity |= TINY.params.tokenize.model_dump(mode="json", exclude={"vocabulary"})
    inputs: dict[str, Any] = {"rows": planted, "texts": enrich, "vocabulary": vocabulary}
    return dict(prove_source(PartJob(source.name, VerifyParams(), inputs, identity, {})).report.measures)


def edited(column: str, edit: Callable[[list[Any]], None]) -> Callable[[pa.Table], pa.Table]:
    def plant(table: pa.Table) -> pa.Table:
        values = table[column].to_pylist()
        edit(values)
        place = table.schema.get_field_index(column)
        field = table.schema.field(column)
        return table.set_column(place, field, pa.array(values, field.type))

    return plant


OFFENSES: dict[str, tuple[str, Callable[[pa.Table], pa.Table]]] = {
    "every_table_matches_its_schema": (PACKED, lambda table: table.drop_columns(["build_aware_fraction"])),
    "columns_are_as_long_as_the_ids": (TOKENS, edited("structure_levels", lambda values: values[0].pop())),
    "columns_are_the_documents_own": (TOKENS, edited("structure_kinds", lambda values: values[0].__setitem__(0, 9))),
    "specials_only_where_written": (TOKENS, edited("input_ids", lambda values: values[0].__setitem__(0, 2))),
    "tokens_are_in_range": (PACKED, edited("input_ids", lambda values: values[0].__setitem__(1, 1024))),
    "documents_are_rebuilt_from_rows": (PACKED, edited("piece_indices", lambda values: values[0].__setitem__(0, 9))),
    "rows_respect_their_boundaries": (PACKED, edited("doc_ids", lambda values: values[0].__setitem__(0, 2))),
    "fractions_are_the_tokens_own": (PACKED, edited("build_aware_fraction", lambda values: values.__setitem__(0, 0.5))),
    "commits_are_in_order": (PACKED, edited("filepath_stable_id", lambda values: values.__setitem__(0, "a file"))),
    "training_rows_equal_packed_rows": (TRAINING, edited("piece_ids", lambda values: values[0].__setitem__(0, 7))),
    "round_trip_is_exact": (TOKENS, edited("text_sha256", lambda values: values.__setitem__(0, "0" * 64))),
}


def test_a_sound_source_fails_no_gate(tiny_store: Store) -> None:
    measures = prove(tiny_store)
    gates = [gate for gate in GATES if gate.stage == "verify" and gate.measure in measures]

    assert OFFENSES.keys() < {gate.name for gate in gates}
    assert [gate.name for gate in gates if not gate.judge(measures, VerifyParams()).passed] == []


@pytest.mark.parametrize("name", OFFENSES)
def test_a_planted_offense_fails_its_gate(name: str, tiny_store: Store) -> None:
    measures = prove(tiny_store, *OFFENSES[name])
    (gate,) = (gate for gate in GATES if gate.name == name)

    assert not gate.judge(measures, VerifyParams()).passed


def output_of(build: MemoryBuild, changes: Changes = NO_CHANGES) -> StageOutput:
    """Return what the stage makes of sound sources in memory."""
    build.run("tokenize")
    return build._run("verify", changes)[0]


def test_canaries_that_were_missed_and_gates_that_nothing_turned_red_are_named(tmp_path: Path) -> None:
    seen = {"gates": {gate.name: [] if gate.name == "splits_are_apart" else ["one"] for gate in GATES}, "code": ""}
    files = {CANARIES: b'{"missed": false, "caught": true}', GATES_SEEN: json.dumps(seen).encode()}
    change = altered(("verify", "canaries"), lambda output: replace(output, files=files))

    assert {note.text for note in output_of(sound_build(tmp_path, TINY.params), change).notes} >= {
        "Canaries that were not caught: missed.",
        "Gates that no offense turned red: splits_are_apart.",
    }


def test_a_source_whose_proof_fails_is_a_failure_of_the_stage(tmp_path: Path) -> None:
    def fail(output: PartOutput) -> NoReturn:
        raise SourceError(SOUND, "its proof broke", "", "")

    output = output_of(sound_build(tmp_path, TINY.params), altered(("verify", SOUND), fail))

    assert output.failures.keys() == {SOUND}


def test_rows_without_held_out_ones_count_where_a_rule_holds_something_out(tmp_path: Path) -> None:
    gate, build = GATES["held_out_rows_exist"], sound_build(tmp_path, TINY.params)
    nothing = altered(("tokenize", SOUND_HELD_OUT), _as_training)
    build.run("tokenize")
    for rule, changes, outcome in (
        (HeldOut(sources=(SOUND_HELD_OUT,)), NO_CHANGES, "passed"),
        (HeldOut(sources=(SOUND_HELD_OUT,)), nothing, "failed"),
        (HeldOut(), nothing, "nothing to judge"),
    ):
        build.params = build.params.model_copy(update={"held_out": rule})
        measures = build._run("verify", changes)[0].report.measures
        assert gate.judge(measures, VerifyParams()).outcome == outcome


def test_a_snapshot_names_the_held_out_sources_that_it_has(tmp_path: Path) -> None:
    build = sound_build(tmp_path, TINY.params)
    build.params = build.params.model_copy(update={"held_out": HeldOut(sources=(SOUND_HELD_OUT, "of-no-build"))})
    snapshot = build.objects[output_of(build).parts["snapshot"]]

    assert snapshot.json(SNAPSHOT_FILE)["held_out"] == [SOUND_HELD_OUT]


@pytest.mark.parametrize(
    ("rule", "num_rules", "is_stated"),
    [
        (HeldOut(), 0, False),
        (HeldOut(sources=("a",)), 1, False),
        (HeldOut(sources=("a", "b"), globs=("*.h",)), 3, True),
        (HeldOut(hash_fraction=0.5), 1, True),
    ],
)
def test_a_rule_on_files_is_in_the_snapshot_and_all_its_parts_are_counted(
    rule: HeldOut, num_rules: int, is_stated: bool
) -> None:
    fields = _held_out_fields(rule, ["b", "c"])
    counts = {f"num_rows_{split}": 3.0 * (split is Split.TRAIN) for split in Split}

    assert fields["held_out"] == [name for name in rule.sources if name == "b"]
    assert fields.get("held_out_rule") == (rule.model_dump(mode="json") if is_stated else None)
    assert _held_out_measures(rule, counts) == {
        "num_held_out_rules": num_rules,
        "num_rows_without_held_out": 3 if num_rules else 0,
    }
