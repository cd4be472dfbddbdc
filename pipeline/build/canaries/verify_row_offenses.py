"""Offenses for the gates of verify that judge packed and memory-mapped rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from pipeline.build.canaries.memory_build import Alteration, Changes
from pipeline.build.canaries.offense import (
    IN_BOTH,
    LARGEST_ID,
    LARGEST_SIZE,
    NUM_PLACES,
    SOURCES,
    Offense,
    after,
    altered,
    at_places,
    both_altered,
    column,
    every,
    fields,
    first_other,
    in_both,
    last_other,
    one_each,
    other_split,
    rows_added,
    rows_changed,
    rows_doubled,
    table_changed,
)
from pipeline.build.canaries.sound_sources import NUM_SOUND_DOCUMENTS, SOUND, SOUND_HELD_OUT
from pipeline.contracts.part import PartJob, PartOutput
from pipeline.contracts.training_row import STRUCTURE
from pipeline.core.records import PROVENANCE_CODES, Provenance, Split
from pipeline.core.table_names import PACKED, TOKENS, TRAINING_ROWS

_SPLIT = {SOUND: Split.TRAIN, SOUND_HELD_OUT: Split.HELD_OUT}
_Change = Callable[[Any], Any]


def _rows(
    name: str,
    gate: str,
    field: str,
    change: _Change,
    last: _Change | None = None,
    tables: Mapping[Split, str] = PACKED,
) -> Offense:
    """Return the offense of a column's values of the first, the middle and the last row of both sources."""
    return Offense(name, (gate,), _in_rows(tables, field, at_places(change, last)), least=IN_BOTH)


def _mapped(name: str, field: str, change: _Change, last: _Change | None = None) -> Offense:
    """Return the same offense of memory-mapped rows."""
    return _rows(name, "training_rows_equal_packed_rows", field, change, last, TRAINING_ROWS)


def _in_rows(tables: Mapping[Split, str], field: str, change: Callable[[list[Any]], list[Any]]) -> Changes:
    """Return the change of a column of the rows of both sources, each in the table of its split."""
    return after(
        *(altered(("tokenize", source), column(tables[split], field, change)) for source, split in _SPLIT.items())
    )


def _rows_lost(name: str, gate: str, least: int = NUM_SOUND_DOCUMENTS) -> Offense:
    """Return the offense of sources without rows: each of their documents is lost."""
    lost = (table_changed(PACKED[split], lambda table: table.slice(0, 0)) for split in _SPLIT.values())
    return Offense(
        name,
        (gate,),
        after(*(altered(("tokenize", source), change) for source, change in zip(_SPLIT, lost, strict=True))),
        least=least,
    )


def _trained(of_last_row: int) -> Changes:
    """Make the rows report that none of their slots is trained, but for so many of the last row of the last source."""
    last = altered(
        ("tokenize", SOURCES[-1]),
        column(
            PACKED[_SPLIT[SOURCES[-1]]], "trained_token_count", lambda found: [*[0] * (len(found) - 1), of_last_row]
        ),
    )
    return after(_in_rows(PACKED, "trained_token_count", every(0)), last)


def _one_more(values: list[int]) -> list[int]:
    return [value + 1 for value in values] or [1]


def _other_ids(rows: list[list[int]]) -> list[list[int]]:
    """Return rows with other ids in all slots but the first."""
    return [[ids[0], *(each ^ 1 for each in ids[1:])] for ids in rows]


def _without_structure(job: PartJob) -> PartJob:
    """Return the proof of rows for which nobody asked for structure."""
    return replace(job, identity={**job.identity, "with_structure": False})


def _commits(documents: Sequence[int], in_row: Sequence[int] | None, file: str | None = "file") -> Changes:
    """Make the first documents commits of a file, and three rows of a piece of each, which say `in_row` of them."""
    said = {"filepath_stable_id": file, "file_local_commit_indices": in_row}
    return after(
        *(altered(("tokenize", name), partial(_as_commits, split, documents, said)) for name, split in _SPLIT.items())
    )


def _as_commits(split: Split, documents: Sequence[int], said: Mapping[str, Any], output: PartOutput) -> PartOutput:
    tokens, rows, num = output.tables[TOKENS], output.tables[PACKED[split]].slice(0, NUM_PLACES), len(documents)
    others: list[Any] = [None] * (tokens.num_rows - num)
    commits = {"filepath_stable_id": ["file"] * num + others, "file_local_commit_index": [*documents, *others]}
    row = {**_a_piece_of_each(tokens["document_id"].to_pylist()[:num]), **said}
    in_rows = {name: [value] * rows.num_rows for name, value in row.items()}
    return replace(
        output, tables={**output.tables, TOKENS: _with(tokens, commits), PACKED[split]: _with(rows, in_rows)}
    )


def _a_piece_of_each(names: list[str]) -> dict[str, list[Any]]:
    """Return the columns of a row that describe its pieces: one token of each document."""
    ones = [1] * len(names)
    return {"source_doc_ids": names, "piece_indices": [0] * len(names), "source_doc_token_lengths": ones}


def _with(table: pa.Table, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return a table with other values in some columns."""
    for name, values in columns.items():
        field = table.schema.field(name)
        table = table.set_column(table.schema.get_field_index(name), field, pa.array(values, type=field.type))
    return table


def _commit(name: str, changes: Changes) -> Offense:
    return Offense(name, ("commits_are_in_order",), changes, control=_IN_ORDER, least=IN_BOTH)


def _of_another_version(table: pa.Table) -> pa.Table:
    return table.replace_schema_metadata({**table.schema.metadata, b"schema_version": b"0"})


def _one_table_of_another_version(output: PartOutput) -> PartOutput:
    """Make the schemas of the first and of the last table that are judged those of another version."""
    first, last = TOKENS, list(TRAINING_ROWS.values())[-1]
    return table_changed(last, _of_another_version)(table_changed(first, _of_another_version)(output))


def _rows_moved(table: Mapping[Split, str]) -> Changes:
    """Return the change of rows that are stored as those of the other split too."""

    def move(split: Split, output: PartOutput) -> PartOutput:
        other = next(each for each in Split if each != split)
        moved = output.tables[table[split]].slice(0, NUM_PLACES)
        return replace(output, tables={**output.tables, table[other]: moved})

    return after(*(altered(("tokenize", source), partial(move, split)) for source, split in _SPLIT.items()))


def _one_row_each(name: str, gate: str, *changes: Callable[[dict[str, Any]], dict[str, Any]]) -> Offense:
    """Return the offense of packed rows, each changed in another way."""
    return one_each(name, [gate], "tokenize", {source: PACKED[split] for source, split in _SPLIT.items()}, changes)


def _rows_of_all(name: str, change: Callable[[dict[str, Any]], dict[str, Any]], times: int = 1) -> Offense:
    """Return the offense of all packed rows: no document can be rebuilt, which is counted so many times."""
    changed = (rows_changed(PACKED[split], lambda rows: [change(row) for row in rows]) for split in _SPLIT.values())
    parts = (altered(("tokenize", source), each) for source, each in zip(_SPLIT, changed, strict=True))
    return Offense(name, ("documents_are_rebuilt_from_rows",), after(*parts), least=times * NUM_SOUND_DOCUMENTS)


def _with_id(slot: int, special: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the change of one id of a row, and of the target that it is."""

    def change(row: dict[str, Any]) -> dict[str, Any]:
        ids = list(row["input_ids"])
        ids[slot] = special
        return row | {"input_ids": ids, "target_ids": [*ids[1:], _PAD]}

    return change


def _with_other_end(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose first piece ends with a special id that ends nothing."""
    return _with_id(row["source_doc_token_lengths"][0] - 1, _OTHER)(row)


def _without_pieces(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of padding alone, which says so."""
    size = len(row["input_ids"])
    lists: dict[str, list[Any]] = {name: [] for name in ("source_doc_ids", "source_doc_token_lengths", "piece_indices")}
    slots = {"input_ids": [_PAD] * size, "target_ids": [_PAD] * size, "loss_mask": [0] * size, "doc_ids": [-1] * size}
    return row | lists | slots | dict.fromkeys(_COUNTS, 0) | {"slack_tokens": size}


def _last_tokens_read(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make a compiler have read the last token of each document."""
    codes = [PROVENANCE_CODES[each] for each in (Provenance.SYNTAX_ONLY, Provenance.BUILD_AWARE)]
    return [row | {"provenances": [codes[0]] * (len(row["input_ids"]) - 1) + codes[1:]} for row in rows]


def _shares_of_last_tokens(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give each packed row the share of the last tokens of documents among its tokens: an end is there for each."""
    found = []
    for row in rows:
        num_ends = row["input_ids"].count(_EOS)
        num_tokens = row["valid_token_count"] - row["num_docs"] - num_ends
        found.append(row | {"build_aware_fraction": num_ends / num_tokens})
    return found


def _small_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of one piece of one token each."""
    piece = {"source_doc_ids": ["of no document"], "piece_indices": [0], "source_doc_token_lengths": [1]}
    return [rows[0] | piece for _ in range(NUM_PLACES + 1)]


_PAD, _BOS, _EOS, _OTHER, _TEXT = 0, 1, 2, 3, 20
"""Special ids, and one of text."""
_COUNTS = ("valid_token_count", "trained_token_count", "slack_tokens", "num_docs")
_READ_BY_A_COMPILER = after(
    both_altered("tokenize", rows_changed(TOKENS, _last_tokens_read)),
    *(
        altered(("tokenize", name), rows_changed(PACKED[split], _shares_of_last_tokens))
        for name, split in _SPLIT.items()
    ),
)
_BOUNDARIES = "rows_respect_their_boundaries"
_IN_ORDER = _commits((0, 1), (0, 1))

VERIFY_ROW_OFFENSES = (
    in_both(
        "schema_of_another_version",
        ["every_table_matches_its_schema"],
        "tokenize",
        _one_table_of_another_version,
        least=2 * len(SOURCES),
    ),
    _rows("id_out_of_range_in_a_row", "tokens_are_in_range", "input_ids", lambda ids: [LARGEST_ID, *ids[1:]]),
    _rows("row_of_another_length", _BOUNDARIES, "doc_ids", lambda ids: ids[:-1]),
    _one_row_each(
        "fields_of_another_row",
        _BOUNDARIES,
        fields(loss_mask=lambda mask: [1] * len(mask)),
        fields(loss_mask=last_other),
        fields(doc_ids=lambda ids: [*ids[:1], *[2] * (len(ids) - 1)]),
        fields(doc_ids=last_other),
        fields(target_ids=first_other),
        fields(target_ids=last_other),
        *(fields(**{name: lambda count: count + 1}) for name in (*_COUNTS, "pack_id")),
        _without_pieces,
    ),
    _one_row_each(
        "special_ids_out_of_place",
        _BOUNDARIES,
        *(_with_id(slot, special) for slot, special in ((0, _TEXT), (1, _PAD), (1, _BOS), (1, _EOS), (2, _OTHER))),
        *(_with_id(-1, special) for special in (_TEXT, _BOS, _EOS, _OTHER)),
        _with_other_end,
    ),
    _rows(
        "pieces_cut_elsewhere",
        "packing_follows_its_rule",
        "source_doc_token_lengths",
        lambda sizes: [sizes[0] - 1, *sizes[1:]],
        lambda sizes: [*sizes[:-1], sizes[-1] + 1],
    ),
    Offense(
        "rows_that_would_fit_into_one",
        ("packing_follows_its_rule",),
        after(*(altered(("tokenize", name), rows_added(PACKED[split], _small_rows)) for name, split in _SPLIT.items())),
        least=IN_BOTH,
    ),
    _rows_of_all(
        "documents_without_their_ends",
        fields(input_ids=lambda ids: [_TEXT if each == _EOS else each for each in ids]),
    ),
    _rows_of_all("documents_without_their_begins", fields(input_ids=lambda ids: [_TEXT, *ids[1:]])),
    _rows_of_all("pieces_of_another_number", fields(piece_indices=_one_more)),
    _rows_of_all("pieces_of_no_document", fields(source_doc_ids=lambda names: [name[::-1] for name in names]), 2),
    Offense(
        "pieces_stored_twice",
        ("documents_are_rebuilt_from_rows",),
        after(*(altered(("tokenize", source), rows_doubled(PACKED[split])) for source, split in _SPLIT.items())),
        least=IN_BOTH,
    ),
    Offense(
        "ids_changed_in_rows",
        ("documents_are_rebuilt_from_rows",),
        _in_rows(PACKED, "input_ids", _other_ids),
        least=NUM_SOUND_DOCUMENTS,
    ),
    _rows_lost("rows_left_out", "documents_are_rebuilt_from_rows"),
    Offense(
        "share_that_nothing_read",
        ("fractions_are_the_tokens_own",),
        after(_READ_BY_A_COMPILER, _in_rows(PACKED, "build_aware_fraction", at_places(lambda share: share + 0.25))),
        control=_READ_BY_A_COMPILER,
        least=IN_BOTH,
    ),
    _rows("row_in_another_split", "documents_are_rebuilt_from_rows", "split", other_split),
    *(
        Offense(name, ("held_out_sources_are_held_out",), _rows_moved(tables), least=IN_BOTH)
        for name, tables in (("rows_of_another_split", PACKED), ("mapped_rows_of_another_split", TRAINING_ROWS))
    ),
    _commit("commit_before_an_earlier_one", _commits((1, 0), (1, 0))),
    _commit("commit_left_out_of_a_row", _commits((0, 2), (0, 2))),
    _commit("commit_that_is_another", _commits((0, 1), (1, 2))),
    _commit("commit_of_another_file", _commits((0, 1), (0, 1), "another file")),
    _commit("row_that_names_no_commit", _commits((0, 1), None, None)),
    _commit("row_that_names_no_file", _commits((0, 1), (0, 1), None)),
    _commit("row_that_names_no_order", _commits((0, 1), None)),
    _mapped("id_changed_in_a_mapped_row", "input_ids", first_other, last_other),
    _mapped("row_of_another_provenance", "provenance", lambda _: "other"),
    _mapped("row_of_another_license", "license", lambda _: "other"),
    _mapped("row_of_another_license_class", "license_class", lambda _: None),
    _mapped("structure_of_some_slots", "structure_levels", lambda levels: levels[1:]),
    _mapped("structure_of_some_rows", "structure_kinds", lambda _: None),
    Offense(
        "mapped_rows_without_structure",
        ("training_rows_equal_packed_rows",),
        after(*(_in_rows(TRAINING_ROWS, name, every(None)) for name in STRUCTURE)),
        least=IN_BOTH,
    ),
    Offense(
        "structure_that_nobody_asked_for",
        ("training_rows_equal_packed_rows",),
        Changes(tuple(Alteration("verify", source, job=_without_structure) for source in SOURCES)),
        least=IN_BOTH,
    ),
    one_each(
        "fields_of_another_mapped_row",
        ["training_rows_equal_packed_rows"],
        "tokenize",
        {source: TRAINING_ROWS[split] for source, split in _SPLIT.items()},
        [
            fields(file_identity=7),
            fields(first_commit_index=7),
            fields(lengths=first_other),
            fields(lengths=last_other),
            fields(piece_ids=lambda ids: [7] * len(ids)),
            fields(piece_ids=last_other),
            fields(chunk_starts=_one_more),
            fields(chunk_starts=lambda starts: [0, *starts[1:]]),
            fields(chunk_counts=first_other),
            fields(chunk_counts=last_other),
            fields(structure_kinds=first_other),
            fields(structure_kinds=last_other),
            fields(structure_levels=first_other),
            fields(structure_levels=last_other),
        ],
    ),
    Offense("rows_of_padding", ("rows_are_worth_reading",), _trained(0), control=_trained(LARGEST_SIZE)),
    Offense(
        "later_pieces_of_another_source",
        ("no_row_lost_in_verify",),
        after(
            _in_rows(PACKED, "source", every("other")),
            _in_rows(PACKED, "piece_indices", lambda rows: [[1] * len(row) for row in rows]),
        ),
        least=3 * NUM_SOUND_DOCUMENTS,  # lost by name, and as misreported, and of a source that has none of them
    ),
    one_each(
        "rows_of_a_license_that_is_not_allowed",
        ["no_row_lost_in_verify"],
        "tokenize",
        {source: TRAINING_ROWS[split] for source, split in _SPLIT.items()},
        [
            fields(license="GPL-3.0-only", license_class="refused"),
            fields(license="GPL-3.0-only"),
            fields(license="MPL-2.0"),
            fields(license="MIT AND GPL-3.0-only"),
            fields(license=None, license_class=None),
            fields(license_class="tagged"),
        ],
    ),
    _rows_lost("row_lost_in_verify", "no_row_lost_in_verify", 2 * NUM_SOUND_DOCUMENTS),  # by name, and as misreported
)
