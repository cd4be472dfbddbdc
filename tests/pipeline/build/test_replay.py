"""A contradiction inside stored data is refused by a promotion, though every digest above it was made to fit."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.promotion import promote
from pipeline.build.recipes import TINY, pins_of
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.build.stage_objects import parts_of
from pipeline.core.digests import code_digest
from pipeline.core.errors import ParamsError, SluiceError, SnapshotError
from pipeline.pins.held_out import HeldOut
from pipeline.stages.stages import STAGES
from pipeline.store.fsck import fsck
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store
from tests.conftest import known_answers
from tests.support.made.made_to_fit import Edit, edit_json, fit, set_value, without_row


@pytest.fixture
def another_process(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """This process promotes what another one built. The ids of the parts that it makes again are listed."""
    made: list[str] = []
    for module in ("replay", "collected.collected_sources"):
        monkeypatch.setattr(f"pipeline.build.{module}.was_made_here", lambda object_id: made.append(object_id))
    return made


def object_of(stage: StoredObject, part: str) -> str:
    """The id of a part of a stage, by its name or its label, or of the stage itself."""
    return {"": stage.object_id, **stage.manifest.inputs, **parts_of(stage)}[part]


def holder_of(store: Store, object_id: str, file: str) -> str:
    """The id of what holds a file of an object: of a source in shards its first one, for a table."""
    stored = store.read(object_id)
    return stored.shards[0].object_id if file.endswith((".parquet", ".arrow")) else object_id


def at(index: int, change: Callable[[Any], Any]) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [*values[:index], change(values[index]), *values[index + 1 :]]


def flipped(value: int) -> int:
    return 1 - value


def one_more(value: Any) -> Any:
    return value + 1


def other(text: str) -> str:
    return ("0" if text[0] != "0" else "1") + text[1:]


def measure(name: str, change: Callable[[Any], Any] = one_more) -> Edit:
    return edit_json(
        lambda report: report | {"measures": report["measures"] | {name: change(report["measures"][name])}}
    )


def field(name: str, change: Callable[[Any], Any] = one_more) -> Edit:
    return edit_json(lambda content: content | {name: change(content[name])})


def first_source(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Edit:
    return edit_json(lambda content: content | {"sources": [change(content["sources"][0]), *content["sources"][1:]]})


FILES, DOCUMENTS, ENRICHED, LISTED = ("files.parquet", "documents.parquet", "enriched.parquet", "listed.parquet")
TOKENS, PACKED, ROWS = ("tokens.parquet", "packed_train.parquet", "rows_train.arrow")
CONTRADICTIONS: dict[str, tuple[str, str, str, Edit]] = {
    # stage, part ("" for the stage itself), file, edit
    "content beside its own digest": ("collect", "quarry", FILES, set_value("content", lambda text: text + b"\n")),
    "a digest beside its content": ("collect", "quarry", FILES, set_value("blob_sha256", other)),
    "a git id beside its content": ("collect", "quarry", FILES, set_value("git_blob_id", other)),
    "a size beside its content": ("collect", "quarry", FILES, set_value("num_bytes", one_more)),
    "a revision that is not the pin's": ("collect", "quarry", FILES, set_value("revision", other)),
    "source as evidence": ("collect", "quarry", FILES, set_value("is_evidence", lambda flag: not flag)),
    "a size in a listing": ("collect", "evidence/quarry.listing", LISTED, set_value("num_bytes", one_more)),
    "a git id in a listing": ("collect", "evidence/quarry.listing", LISTED, set_value("git_blob_id", other)),
    "a listed file that need not be": (
        "collect",
        "evidence/quarry.listing",
        LISTED,
        set_value("is_optional", lambda _: True),
    ),
    "another name in a listing": ("collect", "evidence/quarry.listing", LISTED, set_value("other_path", lambda _: "x")),
    "another member in a listing": ("collect", "evidence/quarry.listing", LISTED, set_value("member", lambda _: "x")),
    "a source of a listing": ("collect", "evidence/quarry.listing", LISTED, set_value("source", other)),
    "a collected file taken out": ("collect", "lantern", FILES, without_row()),
    "a drop taken out of its report": ("collect", "odds", "report.json", field("rows_in")),
    "a document's text": ("normalize", "quarry", DOCUMENTS, set_value("text", lambda text: text + "\n")),
    "a document's id": ("normalize", "quarry", DOCUMENTS, set_value("document_id", other)),
    "a document's license": ("normalize", "quarry", DOCUMENTS, set_value("license", lambda _: "GPL-3.0-only")),
    "a document's split": ("normalize", "heron", DOCUMENTS, set_value("split", lambda _: "train")),
    "a document taken out": ("normalize", "quarry", DOCUMENTS, without_row()),
    "a drop taken out": ("normalize", "odds", "dropped.parquet", without_row()),
    "a reason of a drop": ("normalize", "odds", "dropped.parquet", set_value("reason", lambda _: "generated")),
    "a kept document taken out": ("normalize", "duplicates", "kept.parquet", without_row()),
    "a similarity": ("normalize", "duplicates", "duplicates.parquet", set_value("jaccard", lambda value: value / 2)),
    "a measure of normalize": ("normalize", "", "report.json", measure("num_unwaived_secrets")),
    "an enriched text": ("enrich", "quarry", ENRICHED, set_value("text", lambda text: text + "\n")),
    "a chunk's kind": ("enrich", "quarry", ENRICHED, set_value("chunk_kinds", at(0, lambda kind: (kind + 1) % 9))),
    "a chunk's start": ("enrich", "quarry", ENRICHED, set_value("chunk_starts", at(-2, one_more))),
    "an enriched document taken out": ("enrich", "quarry", ENRICHED, without_row()),
    "a token": ("tokenize", "quarry", TOKENS, set_value("input_ids", at(3, lambda value: (value + 1) % 900))),
    "a token's structure": ("tokenize", "quarry", TOKENS, set_value("structure_kinds", at(0, lambda kind: kind + 1))),
    "a packed loss mask": ("tokenize", "quarry", PACKED, set_value("loss_mask", at(0, flipped))),
    "a packed row taken out": ("tokenize", "quarry", PACKED, without_row()),
    "a training row taken out": ("tokenize", "quarry", ROWS, without_row()),
    "chunk starts of a training row": ("tokenize", "quarry", ROWS, set_value("chunk_starts", at(-1, one_more))),
    "pieces of a training row": ("tokenize", "quarry", ROWS, set_value("piece_ids", lambda ids: [7] * len(ids))),
    "chunks of a training row": ("tokenize", "quarry", ROWS, set_value("chunk_counts", at(0, one_more))),
    "another tokenizer": (
        "tokenize",
        "vocabulary",
        "tokenizer.json",
        lambda path: path.write_bytes(path.read_bytes() + b"\n"),
    ),
    "a count of tokenize": ("tokenize", "quarry", "report.json", measure("num_tokens")),
    "a canary's result": ("verify", "canaries", "canaries.json", edit_json(lambda seen: dict.fromkeys(seen, False))),
    "a canary's number": ("verify", "canaries", "report.json", measure("num_canaries")),
    "an audit": ("normalize", "evidence/audit", "report.json", field("rows_in", lambda number: number - 1)),
    "rows in of a stage": ("collect", "", "report.json", field("rows_in")),
    "a number in snapshot.json": ("verify", "snapshot", "snapshot.json", first_source(lambda s: s | {"num_tokens": 1})),
    "licenses in snapshot.json": ("verify", "snapshot", "snapshot.json", first_source(lambda s: s | {"licenses": {}})),
    "a pin in snapshot.json": ("verify", "snapshot", "snapshot.json", field("pins", lambda pins: pins | {"more": {}})),
    "a tokenizer in the snapshot": ("verify", "snapshot", "tokenizer.json", lambda path: path.write_bytes(b"{}")),
    "a proof of a source": ("verify", "quarry", "report.json", measure("num_round_trip_failures", lambda _: -1)),
    "the use of the vocabulary": ("verify", "quarry", "usage.parquet", set_value("count", one_more, row=9)),
    "a measure of verify": ("verify", "", "report.json", measure("bytes_per_token")),
    "a limit of a gate": ("verify", "", "params.json", field("min_bytes_per_token", lambda limit: limit / 2)),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_data_that_contradicts_itself_is_not_promoted_though_its_digests_fit(
    copied: Store, tiny_results: list[StageResult], name: str
) -> None:
    stage, part, file, edit = CONTRADICTIONS[name]
    live = copied.ref("tiny", "live")
    stored = copied.read(copied.ref("tiny", stage) or "")
    fit(copied, "tiny", {holder_of(copied, object_of(stored, part), file): {file: edit}})

    assert fsck(copied) == []
    with pytest.raises(SluiceError):
        promote(copied, "tiny")
    assert copied.ref("tiny", "live") == live


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("smoke", {"function": "loader"}),
        ("smoke", {"name": "loader"}),
        ("smoke", {"stage": "collect"}),
        ("loader", {"version": 0}),
        ("loader", {"params": {}}),
        ("loader", {"libraries": {}}),
        ("loader", {"more": 1}),
        ("canaries", {"params": {}}),
        ("canaries", {"function": "smoke"}),
        ("canaries", {"version": 0}),
    ],
)
def test_a_part_that_is_not_made_again_is_refused_where_it_says_that_other_work_made_it(
    copied: Store, tiny_results: list[StageResult], part: str, said: dict[str, Any]
) -> None:
    """A proof that names another function has the installed consumer run that one again, and its own never."""
    fit(copied, "tiny", {}, {tiny_results[-1].parts[part]: said})

    assert fsck(copied) == []
    with pytest.raises(SnapshotError, match=f"part {part} has {next(iter(said))}"):
        promote(copied, "tiny")


def test_data_that_is_stored_again_unchanged_is_promoted(copied: Store, tiny_results: list[StageResult]) -> None:
    """The tool alone changes nothing that a promotion refuses."""
    stored = copied.read(copied.ref("tiny", "verify") or "")
    assert fit(copied, "tiny", {stored.object_id: {"report.json": lambda _: None}}) == tiny_results[-1].snapshot_id
    assert promote(copied, "tiny").unchanged


def test_every_part_is_made_again_and_the_snapshot_is_promoted(
    copied: Store, tiny_results: list[StageResult], another_process: list[str]
) -> None:
    for ref in copied.refs("tiny"):
        copied.remove_ref("tiny", ref, "a test")

    assert promote(copied, "tiny", tiny_results[-1].snapshot_id or "").old is None
    stages = [copied.read(result.object_id).manifest.inputs for result in tiny_results]
    listed = {part for inputs in stages for label, part in inputs.items() if label != "previous"}
    parts = {each.object_id for part in listed for each in (copied.read(part), *copied.read(part).shards)}
    not_made = {tiny_results[-1].parts[name] for name in ("canaries", "smoke", "loader")}
    assert set(another_process) == parts - not_made


def test_a_snapshot_whose_pins_have_what_the_store_does_not_hold_is_promoted(
    store: Store, tiny_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bands of languages and weights are in the pins file alone, upstreams and held-out sources in identities."""
    monkeypatch.setattr("pipeline.build.replay.was_made_here", lambda object_id: False)
    changes = {"languages": {"c": (0.0, 1.0), "cpp": (0.0, 1.0)}, "weight": 2.5, "upstreams": {"src/**": "lantern"}}
    pins = tuple(pin.model_copy(update=changes if pin.name == "odds" else {}) for pin in pins_of(TINY))
    params = TINY.params.model_copy(update={"held_out": HeldOut(sources=("heron", "nobody"))})
    with known_answers(tiny_store), open_build(BuildRequest("mine", params, pins, "a test"), store) as build:
        results = list(run_stages(build))

    assert promote(store, "mine").new == results[-1].snapshot_id


def test_what_its_own_build_promoted_is_made_again_once_by_the_next_process(
    copied: Store, another_process: list[str]
) -> None:
    assert [entry for entry in copied.history("tiny") if "replayed_by" in entry] == []

    assert promote(copied, "tiny").replayed_by == code_digest()
    assert another_process
    lines = copied.history("tiny")
    assert lines[-1]["replayed_by"] == code_digest()

    another_process.clear()
    assert promote(copied, "tiny").replayed_by == code_digest()
    assert another_process == []
    assert copied.history("tiny") == lines


def test_what_was_made_again_without_its_archive_is_compared_when_that_has_come(
    copied: Store, another_process: list[str]
) -> None:
    archives = {path: path.read_bytes() for path in sorted((copied.root / "blobs").iterdir())}
    for path in archives:
        copied.log_blob(path.name, is_removed=True)
        path.unlink()
    for _ in range(2):
        assert promote(copied, "tiny").without_archive == ("loom",)
        assert another_process
    another_process.clear()
    promote(copied, "tiny")
    assert another_process == []

    for path, content in archives.items():
        copied.put_blob([content], path.name, "loom")
    assert promote(copied, "tiny").without_archive == ()
    assert another_process
    another_process.clear()
    promote(copied, "tiny")
    assert another_process == []


def test_a_build_that_promotes_what_it_made_itself_records_no_replay(copied: Store) -> None:
    assert promote(copied, "tiny").replayed_by is None


def test_what_a_forging_process_promoted_is_refused_by_the_next_one(
    copied: Store, tiny_results: list[StageResult], another_process: list[str]
) -> None:
    normalize = copied.read(tiny_results[1].object_id)
    forged = fit(copied, "tiny", {object_of(normalize, "quarry"): {DOCUMENTS: set_value("license_detail", other)}})
    proof = {"proof": copied.verified_by(forged) or ""}
    copied.move_ref("tiny", "live", tiny_results[-1].snapshot_id, forged, "build --promote", proof)

    with pytest.raises(SnapshotError, match="made again, it has other documents"):
        promote(copied, "tiny")


@pytest.mark.parametrize("stage", [STAGES.names[0], STAGES.names[-1]])
def test_what_was_never_made_again_and_other_code_made_is_refused_with_both_versions_and_a_rollback_is_not(
    copied: Store,
    tiny_results: list[StageResult],
    stage: str,
    another_process: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot_id, version = tiny_results[-1].snapshot_id or "", STAGES[stage].version
    with monkeypatch.context() as here:
        here.setitem(STAGES._entries, stage, replace(STAGES[stage], version=version + 1))
        with pytest.raises(SnapshotError) as refused:
            promote(copied, "tiny", snapshot_id)
    assert f"it was made with version {version}; expected version {version + 1}, which is installed here" in str(
        refused.value
    )
    assert "Build again and promote that, or promote with what made it" in str(refused.value)

    replayed_by = promote(copied, "tiny", snapshot_id).replayed_by
    copied.remove_ref("tiny", "live", "a test")
    monkeypatch.setitem(STAGES._entries, stage, replace(STAGES[stage], version=version + 1))
    monkeypatch.setattr("pipeline.build.promotion.code_digest", lambda: "f" * 64)
    done = promote(copied, "tiny", snapshot_id)
    assert (done.old, done.replayed_by) == (None, replayed_by)


def test_a_part_that_other_code_made_is_named(copied: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.build.audit.AUDIT_VERSION", 99)

    with pytest.raises(
        SnapshotError,
        match=r"its key is of other inputs, parameters or code; expected the part audit of collect .* installed here",
    ):
        promote(copied, "tiny")


def test_a_function_of_a_stage_that_is_not_there_is_named(copied: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STAGES._entries, "enrich", replace(STAGES["enrich"], run="pipeline.nowhere:run"))

    with pytest.raises(ParamsError, match=r"stage enrich: its run 'pipeline\.nowhere:run' cannot be imported"):
        promote(copied, "tiny")
