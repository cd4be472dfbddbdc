"""Offenses for the gates of verify: stored tokens, rows and answers that are not what they should be."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pipeline.build.canaries.memory_build import Alteration, Changes
from pipeline.build.canaries.offense import (
    Offense,
    after,
    altered,
    answered,
    column,
    every,
    file_changed,
    first,
    of_part,
    row_lost,
    rows_added,
    table_changed,
)
from pipeline.build.canaries.sound_sources import SOUND, SOUND_HELD_OUT
from pipeline.contracts.gates_seen import CANARIES, GATES_SEEN
from pipeline.contracts.part import VOCABULARY_PART, PartJob, PartOutput
from pipeline.core.records import Split
from pipeline.core.table_names import ENRICHED, PACKED, TOKENS, TRAINING_ROWS
from pipeline.formats.megatron import write_megatron
from pipeline.stages.verify.stage import MEGATRON, USAGE

_ROWS, _MAPPED = PACKED[Split.TRAIN], TRAINING_ROWS[Split.TRAIN]
_LARGEST_ID = 65_535
"""No vocabulary is so large."""
_LARGEST_SIZE = 1 << 24
"""Bytes or tokens beyond every limit: a control passes whatever the Params require."""
_BOTH = (SOUND, SOUND_HELD_OUT)
Alter = Callable[[PartOutput], PartOutput]


def _tokens(name: str, gates: str | list[str], field: str, change: Callable[[Any], Any]) -> Offense:
    """Return the offense of the first document's value of a column."""
    return of_part(name, [gates] if isinstance(gates, str) else gates, "tokenize", column(TOKENS, field, first(change)))


def _rows(name: str, gate: str, field: str, change: Callable[[Any], Any], table: str = _ROWS) -> Offense:
    """Return the offense of the first row's value of a column."""
    return of_part(name, [gate], "tokenize", column(table, field, first(change)))


def _in_both(name: str, gate: str, change: Alter, control: Alter | None = None) -> Offense:
    """Return the offense of one alteration of both sources."""
    controls = after(*(altered(("tokenize", source), control) for source in _BOTH)) if control else Changes()
    return Offense(name, (gate,), after(*(altered(("tokenize", source), change) for source in _BOTH)), controls)


def _trained(count: int) -> Alter:
    """Make the rows report that so many of their slots are trained."""
    changes = [column(PACKED[split], "trained_token_count", every(count)) for split in Split]
    return lambda output: changes[1](changes[0](output))


def _other(values: list[int]) -> list[int]:
    """Return a list with another first value."""
    return [values[0] ^ 1, *values[1:]]


def _one_more(values: list[int]) -> list[int]:
    return [value + 1 for value in values]


def _commits(documents: Sequence[int], in_row: Sequence[int] | None, file: str | None = "file") -> Changes:
    """Make the first documents commits of a file, and the rows a single one with a piece of each, which says `in_row` of them."""
    said: dict[str, list[Any]] = {"filepath_stable_id": [file], "file_local_commit_indices": [in_row]}
    return altered("tokenize", lambda output: _as_commits(output, documents, said))


def _as_commits(output: PartOutput, documents: Sequence[int], said: Mapping[str, Sequence[Any]]) -> PartOutput:
    tokens, row, num = output.tables[TOKENS], output.tables[_ROWS].slice(0, 1), len(documents)
    others: list[Any] = [None] * (tokens.num_rows - num)
    commits = {"filepath_stable_id": ["file"] * num + others, "file_local_commit_index": [*documents, *others]}
    pieces = _a_piece_of_each(tokens["document_id"].to_pylist()[:num])
    return replace(
        output, tables={**output.tables, TOKENS: _with(tokens, commits), _ROWS: _with(row, {**pieces, **said})}
    )


def _a_piece_of_each(names: list[str]) -> dict[str, list[Any]]:
    """Return the columns of one row that describe its pieces: one token of each document."""
    ones = [1] * len(names)
    return {"source_doc_ids": [names], "piece_indices": [[0] * len(names)], "source_doc_token_lengths": [ones]}


def _with(table: pa.Table, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return a table with other values in some columns."""
    for name, values in columns.items():
        field = table.schema.field(name)
        table = table.set_column(table.schema.get_field_index(name), field, pa.array(values, type=field.type))
    return table


def _commit(name: str, changes: Changes) -> Offense:
    return Offense(name, ("commits_are_in_order",), changes, control=_IN_ORDER)


def _of_another_version(table: pa.Table) -> pa.Table:
    return table.replace_schema_metadata({**table.schema.metadata, b"schema_version": b"0"})


def _in_two_splits(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**rows[0], "split": str(Split.HELD_OUT)}]


def _with_control(content: bytes) -> bytes:
    """Make a tokenizer that reads its special spellings in a text as control ids."""
    tokenizer = json.loads(content)
    known = tokenizer["model"]["vocab"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    specials = [{"id": known[text], "content": text, **flags} for text in sorted(known) if text.startswith("<|")]
    return json.dumps({**tokenizer, "added_tokens": specials}).encode()


def _megatron(change: Callable[[Any], Any]) -> Changes:
    """Return the change of the Megatron-LM dataset of a source: another one is read back."""

    def dataset(job: PartJob) -> PartJob:
        documents = job.inputs["rows"].table(TOKENS, ["input_ids"])["input_ids"]
        folder = job.inputs["rows"].file("report.json").parent
        prefix = folder / f"megatron-{change(0)}"
        ids = [change(ids.values.to_numpy()) for ids in documents]
        write_megatron(prefix, ids, job.identity["vocabulary"]["specials"]["<|eos|>"])
        return replace(job, places={**job.places, MEGATRON: prefix})

    return Changes((Alteration("verify", SOUND, job=dataset),))


def _answer(name: str, gate: str, part: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Offense:
    """Return the offense of another answer of the consumer."""
    return of_part(name, [gate], ("verify", part), answered(change))


def _stale(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "snapshot_id": "0" * 64}


def _differing(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "checks": [{**check, "num_differing": 1} for check in answer["checks"]]}


def _canaries(name: str, gate: str, file: str, change: Callable[[Any], Any]) -> Offense:
    """Return the offense of other results of canaries."""
    alter = file_changed(file, lambda content: json.dumps(change(json.loads(content))).encode())
    return of_part(name, [gate], ("verify", "canaries"), alter)


def _without_the_first(seen: dict[str, Any]) -> dict[str, Any]:
    first_gate = next(iter(seen["gates"]))
    return {**seen, "gates": {**seen["gates"], first_gate: []}}


def _used(count: int) -> Changes:
    """Return the change of how often each id occurs."""
    alter = column(USAGE, "count", every(count))
    return after(*(altered(("verify", source), alter) for source in _BOTH))


_TOKEN_OFFENSES = (
    _tokens("wrong_id", "round_trip_is_exact", "input_ids", _other),
    _tokens("lossy_document", "round_trip_is_exact", "input_ids", lambda ids: ids[:-1]),
    _tokens("digest_of_another_text", "round_trip_is_exact", "text_sha256", lambda _: "0" * 64),
    of_part(
        "text_that_changed_afterwards",
        ["round_trip_is_exact"],
        "enrich",
        column(ENRICHED, "text", first(lambda text: text.replace("e", "a", 1))),
    ),
    _tokens("column_one_token_short", "columns_are_as_long_as_the_ids", "structure_kinds", lambda kinds: kinds[:-1]),
    _tokens("chunk_past_the_end", "columns_are_as_long_as_the_ids", "chunk_starts", lambda starts: [*starts, 2**31]),
    _tokens("chunk_of_another_kind", "columns_are_the_documents_own", "structure_kinds", lambda kinds: [9, *kinds[1:]]),
    _tokens("control_id_in_a_document", "specials_only_where_written", "input_ids", lambda ids: [0, *ids[1:]]),
    _tokens("id_out_of_range", "tokens_are_in_range", "input_ids", lambda ids: [_LARGEST_ID, *ids[1:]]),
    _in_both("no_document", "documents_were_decoded", table_changed(TOKENS, lambda table: table.slice(0, 0))),
    _tokens("document_of_another_split", "held_out_sources_are_held_out", "split", lambda _: str(Split.HELD_OUT)),
    of_part("text_in_two_splits", ["splits_are_apart"], "tokenize", rows_added(TOKENS, _in_two_splits)),
    _in_both(
        "tokens_of_little_text",
        "tokens_carry_enough_text",
        column(TOKENS, "num_bytes", every(0)),
        column(TOKENS, "num_bytes", every(_LARGEST_SIZE)),
    ),
    Offense("ids_that_never_occur", ("vocabulary_is_used",), _used(0), control=_used(1)),
    Offense(
        "dataset_of_other_ids", ("megatron_reads_back",), _megatron(lambda ids: ids + 1), _megatron(lambda ids: ids)
    ),
    of_part(
        "spelling_read_as_control",
        ["special_spellings_stay_text"],
        ("tokenize", VOCABULARY_PART),
        file_changed("tokenizer.json", _with_control),
    ),
)

_IN_ORDER = _commits((0, 1), (0, 1))
_ROW_OFFENSES = (
    of_part(
        "schema_of_another_version",
        ["every_table_matches_its_schema"],
        "tokenize",
        table_changed(_ROWS, _of_another_version),
    ),
    _rows("target_across_a_boundary", "rows_respect_their_boundaries", "loss_mask", lambda mask: [1] * len(mask)),
    _rows(
        "piece_across_a_boundary",
        "rows_respect_their_boundaries",
        "doc_ids",
        lambda ids: [*ids[:1], *[2] * (len(ids) - 1)],
    ),
    _rows("target_that_is_not_next", "rows_respect_their_boundaries", "target_ids", _other),
    _rows("count_that_is_wrong", "rows_respect_their_boundaries", "valid_token_count", lambda count: count - 1),
    _rows(
        "id_changed_in_a_row",
        "documents_are_rebuilt_from_rows",
        "input_ids",
        lambda ids: [*ids[:1], ids[1] ^ 1, *ids[2:]],
    ),
    of_part(
        "row_left_out",
        ["documents_are_rebuilt_from_rows"],
        "tokenize",
        table_changed(_ROWS, lambda table: table.slice(1)),
    ),
    _rows("share_that_nothing_read", "fractions_are_the_tokens_own", "build_aware_fraction", lambda _: 0.5),
    _rows("row_in_another_split", "documents_are_rebuilt_from_rows", "split", lambda _: str(Split.HELD_OUT)),
    _commit("commit_before_an_earlier_one", _commits((1, 0), (1, 0))),
    _commit("commit_left_out_of_a_row", _commits((0, 2), (0, 2))),
    _commit("commit_that_is_another", _commits((0, 1), (1, 2))),
    _commit("commit_of_another_file", _commits((0, 1), (0, 1), "another file")),
    _commit("row_that_names_no_commit", _commits((0, 1), None, None)),
    _rows("id_changed_in_a_mapped_row", "training_rows_equal_packed_rows", "input_ids", _other, _MAPPED),
    _rows("length_changed_in_a_mapped_row", "training_rows_equal_packed_rows", "lengths", _other, _MAPPED),
    _rows("piece_of_another_name", "training_rows_equal_packed_rows", "piece_ids", lambda ids: [7] * len(ids), _MAPPED),
    _rows("chunks_moved", "training_rows_equal_packed_rows", "chunk_starts", _one_more, _MAPPED),
    _rows(
        "chunk_where_no_text_is",
        "training_rows_equal_packed_rows",
        "chunk_starts",
        lambda starts: [0, *starts[1:]],
        _MAPPED,
    ),
    _rows("structure_changed", "training_rows_equal_packed_rows", "structure_kinds", _other, _MAPPED),
    _in_both("rows_of_padding", "rows_are_worth_reading", _trained(0), _trained(_LARGEST_SIZE)),
)

_ANSWER_OFFENSES = (
    _answer("stale_smoke", "trainer_takes_a_step", "smoke", _stale),
    _answer("no_step", "trainer_takes_a_step", "smoke", lambda answer: {**answer, "losses": []}),
    _answer(
        "loss_that_is_not_a_number",
        "trainer_loss_is_finite",
        "smoke",
        lambda answer: {**answer, "losses": [float("nan")]},
    ),
    _answer("stale_checks_of_the_loader", "loader_was_checked", "loader", _stale),
    _answer("loader_in_another_order", "loader_repeats_itself", "loader", _differing),
    _canaries("canary_that_was_missed", "canaries_are_caught", CANARIES, lambda caught: dict.fromkeys(caught, False)),
    _canaries("no_canary", "canaries_were_sent", CANARIES, lambda _: {}),
    _canaries("gate_never_seen_red", "every_gate_was_seen_red", GATES_SEEN, _without_the_first),
    row_lost("verify", _ROWS, "tokenize"),
)

VERIFY_OFFENSES = (*_TOKEN_OFFENSES, *_ROW_OFFENSES, *_ANSWER_OFFENSES)
