"""Offenses for the gates of verify that judge tokens of documents."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pipeline.build.canaries.memory_build import Alteration, Changes, MadeOutput
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
    file_changed,
    first_other,
    in_both,
    last_other,
    of_part,
    one_each,
    other_split,
    places,
    rows_added,
    rows_changed,
    rows_lost,
    table_changed,
    without_text,
)
from pipeline.build.canaries.sound_sources import NUM_SOUND_DOCUMENTS, SOUND, SOUND_HELD_OUT
from pipeline.contracts.part import VOCABULARY_PART, PartJob, PartOutput
from pipeline.contracts.stage import AUDIT
from pipeline.core.records import Split
from pipeline.core.table_names import ENRICHED, PACKED, TOKENS, TRAINING_ROWS
from pipeline.formats.megatron import write_megatron
from pipeline.formats.snapshot_json import SNAPSHOT_FILE
from pipeline.stages.tokenize.vocabulary import load_vocabulary
from pipeline.stages.verify.columns import BYTE_EXTENTS, BYTE_RUNS
from pipeline.stages.verify.stage import MEGATRON, USAGE

_COLUMNS = "columns_are_the_documents_own"
_LAST_SPECIAL, _FIRST_TEXT_ID = 15, 16
_MANY = 260
"""Documents of more than one batch of a proof."""
_Change = Callable[[Any], Any]


def _tokens(name: str, gate: str, field: str, change: _Change, last: _Change | None = None) -> Offense:
    """Return the offense of a column's values of the first, the middle and the last document of both sources."""
    return in_both(name, [gate], "tokenize", column(TOKENS, field, at_places(change, last)))


def _of_last_source(stage: str, table: str, field: str, values: Callable[[int], list[int]]) -> Changes:
    """Return the change of a column to zeros in the first source, and in the last to the values for so many rows."""
    first, last = SOURCES
    zeros = altered((stage, first), column(table, field, every(0)))
    return after(zeros, altered((stage, last), column(table, field, lambda found: values(len(found)))))


def _spelled_in_bytes(stage: str, source: str) -> Alteration:
    """Return the change of the first, the middle and the last document: one token of several bytes becomes a token for each."""

    def alter(made: MadeOutput) -> MadeOutput:
        spelled = load_vocabulary(made.job.params.vocabulary).token_bytes  # type: ignore[attr-defined]  # TokenizeParams
        single = {value: number for number, value in enumerate(spelled) if len(value) == 1}

        def spell(ids: list[int], which: int) -> list[int]:
            long = [place for place, number in enumerate(ids) if len(spelled[number]) > 1]
            at = long[which] if long else 0
            return [*ids[:at], *(single[bytes([byte])] for byte in spelled[ids[at]]), *ids[at + 1 :]]

        change = at_places(lambda ids: spell(ids, 0), lambda ids: spell(ids, -1))
        return replace(made, output=column(TOKENS, "input_ids", change)(made.output))

    return Alteration(stage, source, alter)


def _in_two_splits(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**rows[index], "split": other_split(rows[index]["split"])} for index in places(len(rows))]


def _by_another_rule(**rule: Any) -> Changes:
    """Return the change of what is held out, as a build was asked for it, to a rule that holds out more."""

    def ask(job: PartJob) -> PartJob:
        return replace(job, identity={**job.identity, "held_out": {**job.identity["held_out"], **rule}})

    return Changes((Alteration("verify", AUDIT, job=ask),))


def _as_training(output: PartOutput) -> PartOutput:
    """Make the documents and rows of a source training data, all of them alike."""
    train, held_out = Split.TRAIN, Split.HELD_OUT
    tables = dict(output.tables)
    for each in (PACKED, TRAINING_ROWS):
        tables |= {each[train]: tables[each[held_out]], each[held_out]: tables[each[train]]}
    return column(TOKENS, "split", every(str(train)))(replace(output, tables=tables))


def _one_token_more(row: dict[str, Any]) -> dict[str, Any]:
    """Return a document with its last token twice."""
    size = len(row["input_ids"])
    return {
        name: [*value, value[-1]] if isinstance(value, list) and len(value) == size else value
        for name, value in row.items()
    }


def _read_by_a_compiler() -> Changes:
    """Return the change of all documents to such that a compiler has read: one name, call, type and use over all of the text."""
    values = {name: number for number, name in enumerate(BYTE_EXTENTS, 1)}
    of_text = fields(symbol_starts=[0], **{BYTE_EXTENTS[name]: [number] for name, number in values.items()})
    return after(
        both_altered(
            "enrich",
            rows_changed(
                ENRICHED, lambda rows: [of_text(row) | {"symbol_ends": [len(row["text"].encode())]} for row in rows]
            ),
        ),
        both_altered(
            "tokenize",
            rows_changed(
                TOKENS,
                lambda rows: [
                    row | {name: [number] * len(row["input_ids"]) for name, number in values.items()} for row in rows
                ],
            ),
        ),
    )


def _many(ids: Callable[[list[list[int]]], list[list[int]]]) -> Changes:
    """Return the change of both sources to many more documents without text, to which `ids` gives ids."""
    names = [f"{number:064x}" for number in range(_MANY)]
    found = ids([[] for _ in names])

    def add(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        empty = without_text(rows[0])
        return [empty | {"document_id": name} for name in names]

    def add_tokens(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row | {"input_ids": ids} for row, ids in zip(add(rows), found, strict=True)]

    return after(
        both_altered("enrich", rows_added(ENRICHED, add)), both_altered("tokenize", rows_added(TOKENS, add_tokens))
    )


def _with_control(content: bytes) -> bytes:
    """Make a tokenizer that reads the first and the last of its special spellings in a text as control ids."""
    tokenizer = json.loads(content)
    known = tokenizer["model"]["vocab"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    spellings = sorted(text for text in known if text.startswith("<|"))
    specials = [{"id": known[text], "content": text, **flags} for text in (spellings[0], spellings[-1])]
    return json.dumps({**tokenizer, "added_tokens": specials}).encode()


def _megatron(name: str, change: _Change, last: _Change) -> Changes:
    """Return the change of the Megatron-LM datasets of both sources: others are read back."""

    def dataset(job: PartJob) -> PartJob:
        documents = job.inputs["rows"].table(TOKENS, ["input_ids"])["input_ids"]
        folder = job.inputs["rows"].file("report.json").parent
        prefix = folder / f"megatron-{name}-{job.name}"
        ids = at_places(change, last)([ids.values.to_numpy() for ids in documents])
        write_megatron(prefix, ids, job.identity["vocabulary"]["specials"]["<|eos|>"])
        return replace(job, places={**job.places, MEGATRON: prefix})

    return Changes(tuple(Alteration("verify", source, job=dataset) for source in SOURCES))


VERIFY_TOKEN_OFFENSES = (
    _tokens("wrong_id", "round_trip_is_exact", "input_ids", first_other, last_other),
    Offense(
        "wrong_id_among_many_documents",
        ("round_trip_is_exact",),
        _many(at_places(lambda _: [_FIRST_TEXT_ID])),
        control=_many(list),
        least=IN_BOTH,
    ),
    Offense(
        "tokens_spelled_in_bytes",
        ("ids_are_the_tokenizers_own",),
        Changes(tuple(_spelled_in_bytes("tokenize", source) for source in SOURCES)),
        least=IN_BOTH,
    ),
    _tokens("lossy_document", "round_trip_is_exact", "input_ids", lambda ids: ids[:-1], lambda ids: ids[1:]),
    in_both(
        "digest_of_another_text",
        ["round_trip_is_exact", "no_row_lost_in_tokenize"],
        "tokenize",
        column(TOKENS, "text_sha256", at_places(lambda _: "0" * 64)),
    ),
    in_both(
        "text_that_changed_afterwards",
        ["round_trip_is_exact"],
        "enrich",
        column(ENRICHED, "text", at_places(lambda text: text.replace("e", "a", 1), lambda text: text[:-1])),
    ),
    _tokens("column_one_token_short", "columns_are_as_long_as_the_ids", "depths", lambda found: found[:-1]),
    _tokens("level_one_token_short", "columns_are_as_long_as_the_ids", "structure_levels", lambda found: found[1:]),
    _tokens("chunk_past_the_end", "columns_are_as_long_as_the_ids", "chunk_starts", lambda starts: [*starts, 2**31]),
    _tokens(
        "chunk_of_another_kind",
        _COLUMNS,
        "structure_kinds",
        lambda kinds: [9, *kinds[1:]],
        lambda kinds: [*kinds[:-1], 9],
    ),
    one_each(
        "columns_of_another_document",
        [_COLUMNS],
        "tokenize",
        dict.fromkeys(SOURCES, TOKENS),
        [fields(**{name: last_other}) for name in BYTE_RUNS],
    ),
    one_each(
        "fields_of_another_document",
        [_COLUMNS],
        "tokenize",
        dict.fromkeys(SOURCES, TOKENS),
        [
            fields(path="other.cpp"),
            fields(provenance="other"),
            fields(num_bytes=lambda number: number + 1),
            fields(filepath_stable_id="other"),
            fields(file_local_commit_index=0),
            fields(text_sha256="0" * 64),
        ],
    ),
    one_each(
        "license_of_another_document",
        [_COLUMNS, "no_row_lost_in_tokenize"],
        "tokenize",
        dict.fromkeys(SOURCES, TOKENS),
        [fields(license="Zlib"), fields(license_class="tagged"), fields(license=None), fields(license_class=None)],
    ),
    one_each(
        "document_of_more_than_its_text",
        [_COLUMNS],
        "tokenize",
        dict.fromkeys(SOURCES, TOKENS),
        [
            fields(source="other"),
            _one_token_more,
            fields(depths=None),
            fields(split=other_split),
            lambda row: row | {"symbols": [0] * len(row["input_ids"])},
            fields(document_id="0" * 64),
        ],
    ),
    one_each(
        "names_of_another_text",
        [_COLUMNS],
        "tokenize",
        dict.fromkeys(SOURCES, TOKENS),
        [*(fields(**{name: last_other}) for name in BYTE_EXTENTS), fields(symbols=None)],
        sound=_read_by_a_compiler(),
    ),
    in_both("document_without_tokens", ["round_trip_is_exact"], "tokenize", rows_lost(TOKENS)),
    _tokens("chunks_out_of_order", "columns_are_as_long_as_the_ids", "chunk_starts", lambda starts: starts[::-1]),
    _tokens(
        "control_id_in_a_document",
        "specials_only_where_written",
        "input_ids",
        lambda ids: [0, *ids[1:]],
        lambda ids: [*ids[:-1], _LAST_SPECIAL],
    ),
    _tokens(
        "id_out_of_range",
        "tokens_are_in_range",
        "input_ids",
        lambda ids: [LARGEST_ID, *ids[1:]],
        lambda ids: [*ids[:-1], LARGEST_ID],
    ),
    in_both(
        "no_document",
        ["documents_were_decoded"],
        "tokenize",
        table_changed(TOKENS, lambda table: table.slice(0, 0)),
        least=NUM_SOUND_DOCUMENTS,
    ),
    _tokens("document_of_another_split", "held_out_sources_are_held_out", "split", other_split),
    of_part(
        "other_sources_held_out",
        ["held_out_sources_are_held_out"],
        ("verify", "snapshot"),
        file_changed(SNAPSHOT_FILE, lambda content: json.dumps({**json.loads(content), "held_out": [SOUND]}).encode()),
        least=len(SOURCES),
    ),
    Offense(
        "held_out_source_that_is_trained_on",
        ("held_out_sources_are_held_out", "held_out_rows_exist"),
        after(
            altered(
                ("verify", "snapshot"),
                file_changed(
                    SNAPSHOT_FILE, lambda content: json.dumps({**json.loads(content), "held_out": []}).encode()
                ),
            ),
            altered(("tokenize", SOUND_HELD_OUT), _as_training),
        ),
        least=1 + NUM_PLACES,  # the source, and each document and row
    ),
    *(
        Offense(f"documents_that_{name}_holds_out", ("held_out_sources_are_held_out",), changes, least=NUM_PLACES)
        for name, changes in (
            ("a_glob", _by_another_rule(globs=[f"{SOUND}/*.cpp", f"{SOUND}/?e*d.h", "**/th*.c"])),
            ("a_hash", _by_another_rule(hash_fraction=1 - 2**-53)),
        )
    ),
    in_both("text_in_two_splits", ["splits_are_apart"], "tokenize", rows_added(TOKENS, _in_two_splits)),
    Offense(
        "tokens_of_little_text",
        ("tokens_carry_enough_text",),
        _of_last_source("tokenize", TOKENS, "num_bytes", lambda count: [0] * count),
        control=_of_last_source("tokenize", TOKENS, "num_bytes", lambda count: [*[0] * (count - 1), LARGEST_SIZE]),
    ),
    Offense(
        "ids_that_never_occur",
        ("vocabulary_is_used",),
        _of_last_source(
            "verify", USAGE, "count", lambda count: [*[1] * (_FIRST_TEXT_ID + 1), *[0] * (count - _FIRST_TEXT_ID - 1)]
        ),
        control=_of_last_source("verify", USAGE, "count", lambda count: [1] * count),
        least=0.9,
    ),
    Offense(
        "dataset_of_other_ids",
        ("megatron_reads_back",),
        _megatron("other", lambda ids: ids + 1, lambda ids: ids[:-1]),
        control=_megatron("same", lambda ids: ids, lambda ids: ids),
        least=IN_BOTH,
    ),
    of_part(
        "spelling_read_as_control",
        ["special_spellings_stay_text"],
        ("tokenize", VOCABULARY_PART),
        file_changed("tokenizer.json", _with_control),
        least=2 * NUM_PLACES,  # two specials, each alone, in a string and in a comment
    ),
)
