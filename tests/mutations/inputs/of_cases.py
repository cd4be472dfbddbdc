"""Mutations by name: the faults that once stayed green."""

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.build.recipes import with_items
from pipeline.build.withdrawal import withdraw
from pipeline.core.records import Document
from pipeline.core.table_names import DOCUMENTS, FILES, PACKED, TOKENS, TRAINING_ROWS
from pipeline.pins.decisions import Decision
from pipeline.stages.normalize.duplicates.duplicates import SignatureRecord
from pipeline.stages.stages import STAGES
from tests.faults.injected_faults import flip
from tests.mutations import plant
from tests.mutations.bench import CORPUS, Bench
from tests.mutations.inputs.of_consumers import CONSUMER_CASES
from tests.mutations.mutation import Kind, Mutation
from tests.mutations.of_gates import LOST, SEEN
from tests.mutations.offenses.gate_offenses import (
    built_source,
    change_tokenizer,
    drop_most,
    lose,
    offend,
    relabel_headers,
)
from tests.mutations.offenses.row_offenses import edit_all
from tests.mutations.offenses.token_faults import give_each_piece_a_row
from tests.mutations.stored import forge_files, forge_table, parts_with

_PATH = '-DFLAGS="-I/opt/x/include -O2"'


def mutations() -> Iterator[Mutation]:
    """Return the mutations by name."""
    for name, (kind, planted, expected, run) in CASES.items():
        yield Mutation(f"case/{name}", kind, planted, expected, run)


def _copies_hidden(bench: Bench) -> None:
    """Keep all copies, under digests of their own in the table that copies are found by."""
    plant.alter_record(SignatureRecord, lambda row: {"text_sha256": row["document_id"]})
    plant.wrap(
        "pipeline.stages.normalize.duplicates.containment:find_contained",
        lambda found: lambda *given, **named: {} if plant.is_corpus() else found(*given, **named),
    )
    _offend("no_exact_duplicate_is_left", bench)


def _lose_in(stage: str, bench: Bench) -> None:
    lose(stage, bench, "case", None)
    bench.build()


def _offend(gate: str, bench: Bench) -> None:
    offend(gate, bench)
    bench.build()


def _decide_alone(bench: Bench) -> None:
    """Have the building process decide about a file that was quarantined."""
    bench.since = "normalize"
    path, who = "third_party/formula/formula.c", {"person": "nobody", "reason": "Planted."}
    invented = Decision(source="quarry", path=path, license="MIT", **who)

    def deciding(init: Any) -> Any:
        def initialized(self: Any, *given: Any) -> None:
            init(self, *given)
            self.decisions = (*self.decisions, invented)

        return initialized

    plant.wrap("pipeline.build.build_context:BuildContext.__init__", deciding)
    bench.build()


def _say_decided(bench: Bench) -> None:
    bench.since = "normalize"
    plant.alter_record(Document, lambda row: {"license_evidence": "decision"} if row["path"].endswith(".hpp") else {})
    bench.build()


def _ignore_items(bench: Bench) -> None:
    """Build with evaluation items of a folder, which the stage does not read."""
    bench.since = "normalize"
    item = {
        "id": "given/1",
        "prompt": "x",
        "solution": "int add(int a, int b) { return a + b * b + a * a - b; } int c;",
    }
    folder = bench.folder / "items"
    folder.mkdir()
    (folder / "given.jsonl").write_text(json.dumps(item))
    without = bench.params.normalize
    bench.params = with_items(bench.params, folder)

    def make(run: Any) -> Any:
        def ignoring(context: Any) -> Any:
            context.params = without
            return run(context)

        return ignoring

    plant.wrap(STAGES["normalize"].run, make)
    bench.build()


def _say_nothing(field: str, value: str, bench: Bench) -> None:
    bench.since = "normalize"
    plant.alter_record(Document, lambda row: {field: value})
    bench.build()


def _rows_flipped(bench: Bench) -> None:
    part = next(each for each in parts_with(bench, "rows_train.arrow") if each.table("rows_train.arrow").num_rows)
    flip(part.path / "rows_train.arrow")
    bench.promote(bench.live_id)


def _other_tokenizer(bench: Bench) -> None:
    path = bench.store.read(bench.live_id).path / "tokenizer.json"
    path.write_bytes(change_tokenizer(path.read_bytes()))
    bench.promote(bench.live_id)


def _object_deleted(name: str, bench: Bench) -> None:
    shutil.rmtree(parts_with(bench, name)[0].path)
    bench.promote(bench.live_id)


def _withdrawn_comes_back(damage: Callable[[Path], Any], bench: Bench) -> None:
    """Withdraw files, damage the log of it, build: the files must not come back unnoticed."""
    withdraw(bench.store, "lantern/src/**", "its owner asked")
    damage(bench.store.root / "log" / "withdrawals.jsonl")
    bench.since = ""
    bench.build()
    bench.fsck()


def _withdrawn_before(bench: Bench) -> None:
    """Withdraw files, put the log of it and its head back as they were before, build."""
    paths = [bench.store.root / "log" / f"withdrawals.{suffix}" for suffix in ("jsonl", "head")]
    before = {path: path.read_bytes() for path in paths if path.exists()}
    _withdrawn_comes_back(lambda log: [log.unlink(), *(path.write_bytes(each) for path, each in before.items())], bench)


def _older_ref(bench: Bench) -> None:
    """Move the candidate on, put its older ref back, promote that."""
    path = bench.store.root / "refs" / CORPUS / "candidate"
    older = path.read_bytes()
    other = bench.store.ref(CORPUS, "verify") or ""
    bench.store.move_ref(CORPUS, "candidate", bench.live_id, other, "a later build")
    path.write_bytes(older)
    bench.promote()
    bench.fsck()


def _lines(keep: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(b"".join(keep(path.read_bytes().splitlines(keepends=True))))


def _forge(table: str, change: Callable[[Any], Any], bench: Bench) -> None:
    bench.promote(forge_table(bench, table, change))


def _forge_list(table: str, column: str, change: Callable[[list[Any]], list[Any]], bench: Bench) -> None:
    _forge(table, lambda before: edit_all({table: before}, table, column, change)[table], bench)


def _stale_blob(bench: Bench) -> None:
    changed = [b"int changed;\n"]
    _forge(FILES, lambda table: plant.edit_column(table, "content", lambda values: [*values[:-1], *changed]), bench)


def _canary_flipped(bench: Bench) -> None:
    """Forge a build whose canaries missed one, with its count as before."""
    canaries = parts_with(bench, "canaries.json")[0]
    result = json.loads((canaries.path / "canaries.json").read_bytes())
    first = sorted(result)[0]
    content = json.dumps({**result, first: False}, indent=1, sort_keys=True).encode()
    bench.promote(forge_files(bench, {canaries.object_id: {"canaries.json": content}}))


def _every_list(column: str, change: Callable[[list[Any]], list[Any]], bench: Bench) -> None:
    bench.since = "tokenize"

    def changed(tables: Any) -> Any:
        for name in TRAINING_ROWS.values():
            tables = edit_all(tables, name, column, change)
        return tables

    plant.alter_tables("tokenize", "source", changed)
    bench.build()


def _one_piece_a_row(bench: Bench) -> None:
    give_each_piece_a_row(bench)
    bench.build()


def _relabeled(bench: Bench) -> None:
    relabel_headers(bench)
    bench.build()


def _mostly_generated(bench: Bench) -> None:
    drop_most(bench)
    bench.build()


def _no_chronology(bench: Bench) -> None:
    bench.build(until_live=False)
    for verdict in bench.verdicts:
        if verdict.gate == "commits_are_in_order" and not (verdict.passed and "nothing" not in verdict.sentence):
            bench.say("nothing-to-judge", verdict.sentence)


def _round_trip_passes(bench: Bench) -> None:
    plant.constant("pipeline.stages.verify.tokens:count_round_trip_failures", 0)
    bench.build()


def _boundaries_pass(bench: Bench) -> None:
    plant.constant("pipeline.stages.verify.packed_rows:count_boundary_mismatches", 0)
    bench.build()


def _stale_smoke(bench: Bench) -> None:
    bench.answers["smoke"] = {"losses": [6.9], "snapshot_id": "0" * 64}
    bench.build()


def _few_slots(bench: Bench) -> None:
    """Give the experts of every preset slots for their mean load alone, in evaluation too."""

    def make(place: Any) -> Any:
        from trainer.model.blocks.experts import TILE, place_within_capacity

        def within_capacity(chosen: Any, is_token: Any, num_experts: int, tile: int) -> Any:
            mean_load = chosen.numel() // num_experts
            return place_within_capacity(chosen, is_token, num_experts, max(TILE, mean_load // TILE * TILE))

        return within_capacity

    plant.wrap("trainer.model.blocks.experts:place_pairs", make)
    bench.run_tests("tests/trainer/model/test_hybrid_packing_invariance.py")


def _path_in_definition(bench: Bench) -> None:
    """Build a source whose compile database has a path after an option inside a definition, as other machines have."""
    built_source(bench, f"g++ {_PATH!s} -c wing.cpp".replace('"', '\\"'), {})
    bench.build()
    for part in parts_with(bench, "enriched.parquet"):
        contexts = [context for context in part.table("enriched.parquet")["build_context"].to_pylist() if context]
        if contexts and not any("/opt/x" in context for context in contexts):
            bench.say("scrubbed", contexts[0])


def _no_scrubber(bench: Bench, path: str = _PATH) -> None:
    plant.wrap("pipeline.stages.enrich.compiler.source_tree:SourceTree.scrubbed", lambda _: lambda self, value: value)
    built_source(bench, f"g++ {path!s} -c wing.cpp".replace('"', '\\"'), {})
    bench.build()


def _no_counter(bench: Bench) -> None:
    plant.constant("pipeline.stages.enrich.compiler.local_paths:count_local", 0)
    _no_scrubber(bench)


def _seven(values: list[Any]) -> list[Any]:
    return [7] * len(values)


def _later(values: list[Any]) -> list[Any]:
    return [value + 1 for value in values]


_PATHS_GATE = "gate:no_local_path_in_a_build_context"
CASES: dict[str, tuple[Kind, str, tuple[str, ...], Callable[[Bench], None]]] = {
    **{
        f"1-lost-in-{stage}": (Kind.STAGE, f"files lost in {stage} in silence", LOST, partial(_lose_in, stage))
        for stage in ("collect", "normalize", "enrich", "tokenize", "verify")
    },
    **{
        f"1-{gate}": (Kind.STAGE, f"the offense of {gate}", (f"gate:{gate}",), partial(_offend, gate))
        for gate in ("provenance_on_every_document", "every_file_has_a_revision")
    },
    **{
        f"1-{name}": (Kind.STAGE, planted, ("gate:no_row_lost_in_normalize",), run)
        for name, (planted, run) in {
            "evaluation-items-ignored": ("evaluation items given to a build that its rules do not read", _ignore_items),
            "decision-of-nobody": ("a license that only the building process concluded", _decide_alone),
            **{
                f"{field}-{value}": (f"{field} {value} for all", partial(_say_nothing, field, value))
                for field, value in (("license_detail", "x"), ("license_evidence", "sidecar"), ("scores", "{}"))
            },
            "decided-without-decision": ("licenses by decisions that are nowhere", _say_decided),
        }.items()
    },
    "1-copies-under-other-digests": (
        Kind.STAGE,
        "equal texts kept, whose digests in the table that copies are found by differ",
        ("gate:no_exact_duplicate_is_left",),
        _copies_hidden,
    ),
    "2-row-file-flipped": (Kind.STORED, "a row file flipped, then promoted", ("promote",), _rows_flipped),
    "2-other-tokenizer": (Kind.STORED, "another tokenizer.json, then promoted", ("promote",), _other_tokenizer),
    **{
        f"2-deleted-{name.partition('.')[0]}": (
            Kind.STORED,
            f"the object of a {name} deleted, then promoted",
            ("promote",),
            partial(_object_deleted, name),
        )
        for name in (FILES, DOCUMENTS, "kept.parquet", "enriched.parquet", TOKENS, "usage.parquet", "canaries.json")
    },
    **{
        f"2-withdrawal-{how}": (
            Kind.STORED,
            f"files withdrawn, the log of it {how}, then built",
            ("error:build", "promote", "fsck"),
            partial(_withdrawn_comes_back, damage),
        )
        for how, damage in {
            "removed": Path.unlink,
            "cut by a line": _lines(lambda lines: lines[:-1]),
            "undone by hand": _lines(
                lambda lines: [*lines, lines[-1].replace(b'"is_undone":false', b'"is_undone":true')]
            ),
        }.items()
    },
    "2-withdrawal-put back with its head": (
        Kind.STORED,
        "files withdrawn, the log of it and its head as they were before, then built",
        ("error:build",),
        _withdrawn_before,
    ),
    "2-older-ref": (Kind.STORED, "the candidate moved on, its older ref put back", ("promote",), _older_ref),
    "2-stale-blob-digest": (Kind.STORED, "content beside its own stale blob digest", ("promote",), _stale_blob),
    "2-loss-mask": (
        Kind.STORED,
        "loss_mask all ones, with digests that fit",
        ("promote",),
        partial(_forge_list, PACKED["train"], "loss_mask", lambda values: [1] * len(values)),
    ),
    "2-chunk-starts": (
        Kind.STORED,
        "chunk_starts of tokens one later, with digests that fit",
        ("promote",),
        partial(_forge_list, TOKENS, "chunk_starts", _later),
    ),
    "2-hot-piece-ids": (
        Kind.STORED,
        "hot piece_ids all 7, with digests that fit",
        ("promote",),
        partial(_forge_list, TRAINING_ROWS["train"], "piece_ids", _seven),
    ),
    "2-row-taken-out": (
        Kind.STORED,
        "a training row taken out, with digests that fit",
        ("promote",),
        partial(_forge, TRAINING_ROWS["train"], lambda table: table.slice(1)),
    ),
    "2-canary-flipped": (
        Kind.STORED,
        "a canary's result flipped, with digests that fit",
        ("promote",),
        _canary_flipped,
    ),
    **CONSUMER_CASES,
    "4-piece-ids": (Kind.STAGE, "all hot piece_ids 7", ("gate:*",), partial(_every_list, "piece_ids", _seven)),
    "4-chunk-starts": (
        Kind.STAGE,
        "all hot chunk_starts one later",
        ("gate:*",),
        partial(_every_list, "chunk_starts", _later),
    ),
    "4-one-piece-a-row": (
        Kind.STAGE,
        "each piece in a row of its own",
        ("gate:packing_follows_its_rule",),
        _one_piece_a_row,
    ),
    "5-relabeled": (
        Kind.STAGE,
        "headers of a held-out source labeled train",
        ("gate:splits_are_apart", "gate:*held_out*"),
        _relabeled,
    ),
    "6-mostly-generated": (
        Kind.STAGE,
        "seven of eight files dropped as generated",
        ("gate:drops_are_in_their_bands",),
        _mostly_generated,
    ),
    "7-nothing-to-judge": (
        Kind.INPUTS,
        "no document with chronology: the gate has nothing to judge",
        ("nothing-to-judge",),
        _no_chronology,
    ),
    "8-round-trip-passes": (Kind.STAGE, "the round trip finds no failure", SEEN, _round_trip_passes),
    "8-boundaries-pass": (Kind.STAGE, "the proof of boundaries finds no mismatch", SEEN, _boundaries_pass),
    "8-stale-smoke": (
        Kind.TRAINER,
        "the trainer answers about another snapshot",
        ("gate:trainer_takes_a_step", "error:build"),
        _stale_smoke,
    ),
    "9-few-slots": (
        Kind.PARAMETERS,
        "the experts' slots limited to their mean load",
        ("test:*",),
        _few_slots,
    ),
    "10-path-in-a-definition": (
        Kind.INPUTS,
        "a path after an option inside a definition",
        ("scrubbed", _PATHS_GATE),
        _path_in_definition,
    ),
    "10-no-scrubber": (Kind.STAGE, "the same, and the scrubber removes no path", (_PATHS_GATE,), _no_scrubber),
    **{
        f"10-no-scrubber-{name}": (
            Kind.STAGE,
            f"a path {planted} in a definition, and the scrubber removes no path",
            (_PATHS_GATE,),
            partial(_no_scrubber, path=path),
        )
        for name, planted, path in (
            ("unknown-option", "after an option that no list has", '-DFLAGS="-imsvc/opt/x"'),
            ("entity", "spelled as entities", '-DFLAGS="&#47;opt&#47;x"'),
            ("format", "after a conversion of printf", '-DFLAGS="%s/opt/x"'),
        )
    },
    "10-no-counter": (Kind.STAGE, "the same, and the gate counts none", SEEN, _no_counter),
}
