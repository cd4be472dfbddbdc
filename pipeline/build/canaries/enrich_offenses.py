"""Offenses for the gates of enrich."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pipeline.build.canaries.memory_build import Alteration, Changes, MadeOutput
from pipeline.build.canaries.offense import (
    IN_BOTH,
    SOURCES,
    Offense,
    after,
    at_places,
    both_altered,
    column,
    copied_of_another,
    every,
    fields,
    in_both,
    of_part,
    one_each,
    rows_added,
    rows_changed,
    without_text,
)
from pipeline.contracts.part import PartOutput
from pipeline.core.digests import document_id
from pipeline.core.records import PROVENANCE_CODES, Provenance
from pipeline.core.table_names import ENRICHED

_DEGRADED = PROVENANCE_CODES[Provenance.DEGRADED]
_CONTEXT = {"compiler": "c++", "options": ["-O2"]}
_COMPILED: tuple[dict[str, Any], ...] = (
    {"provenance": Provenance.BUILD_AWARE.value},
    {"provenance_detail": "tool_failed: nothing ran"},
    {"provenance_detail": "x"},
    {"build_context": json.dumps(_CONTEXT)},
    {"provenance_codes": lambda codes: [*codes[:-1], PROVENANCE_CODES[Provenance.BUILD_AWARE]]},
    {"symbols": [1]},
    {"calls": [1]},
    {"type_references": [1]},
    {"definitions_and_uses": [1]},
    {"symbol_starts": [0]},
    {"symbol_ends": [1]},
)
"""Columns of a document, and what only a compiler can give them."""
_STRUCTURED: tuple[tuple[str, tuple[dict[str, Any], ...]], ...] = (
    (
        "leaves",
        (
            {"node_depths": lambda depths: [0] * len(depths)},
            {"node_siblings": lambda siblings: [1] * len(siblings)},
            {"node_types": lambda types: [types[0]] * len(types)},
            {"node_starts": None},
            {"node_depths": lambda depths: [*range(len(depths))]},
            {"node_starts": lambda starts: [*starts[:-1], starts[-2]]},
        ),
    ),
    (
        "chunks",
        (
            {"chunk_levels": lambda levels: [level + 1 for level in levels]},
            {"chunk_kinds": lambda kinds: [kinds[0]] * len(kinds)},
            {"chunk_kinds": lambda kinds: kinds[::-1]},
            {"chunk_kinds": lambda kinds: kinds[::-1]},
            {"includes": []},
            {"includes": ["<canary.h>"]},
        ),
    ),
    (
        "shifted_leaves",
        (
            {"node_starts": lambda starts: [starts[0], *(start + 1 for start in starts[1:])]},
            {"node_starts": lambda starts: [starts[0], *(start - 1 for start in starts[1:])]},
            {"node_siblings": lambda siblings: [each + 2 for each in siblings]},
            {"node_siblings": lambda siblings: [each + 1 for each in siblings]},
        ),
    ),
    (
        "errors_and_languages",
        (
            {"language": "of none"},
            {"error_fraction": 0.75, "provenance_codes": lambda codes: [_DEGRADED] * len(codes)},
            {"provenance_codes": lambda codes: [_DEGRADED] * len(codes)},
            {"provenance": Provenance.DEGRADED.value},
            {"provenance": Provenance.DEGRADED.value, "error_fraction": 0.0},
            {
                "provenance": Provenance.DEGRADED.value,
                "provenance_detail": "max_error_fraction",
                "provenance_codes": lambda codes: [_DEGRADED] * len(codes),
            },
        ),
    ),
)
"""Values that contradict the text, by what they are of."""
_MANY = 90
"""Documents beside which the first ones of the sources are no share."""


def _built(**shares: float) -> Changes:
    """Return the change of sources with a `build` block that expects shares of documents to be compiled, or to fail at most."""
    block = {"cmake": True, **shares}

    def change(made: MadeOutput) -> MadeOutput:
        return replace(made, job=replace(made.job, identity={**made.job.identity, "build": block}))

    return Changes(tuple(Alteration("enrich", source, change) for source in SOURCES))


def _contexts(*includes: str) -> Changes:
    """Give every document a build context of its own, with folders to include."""

    def contexts(found: list[Any]) -> list[str]:
        return [json.dumps({**_CONTEXT, "unit": f"{n}.cpp", "include": list(includes)}) for n in range(len(found))]

    return both_altered("enrich", column(ENRICHED, "build_context", contexts))


def _after_the_first(name: str, value: str) -> Callable[[PartOutput], PartOutput]:
    """Return an alteration of a column of all documents but the first."""
    return column(ENRICHED, name, lambda found: [found[0], *[value] * (len(found) - 1)])


def _only_the_first_compiled(output: PartOutput) -> PartOutput:
    provenance = Provenance.BUILD_AWARE.value
    return column(ENRICHED, "provenance", lambda found: [provenance, *found[1:]])(output)


def _many_degraded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [without_text(rows[-1]) | {"provenance": Provenance.DEGRADED.value}] * _MANY


def _without_a_byte(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "provenance_starts": [row["provenance_starts"][0] + 1, *row["provenance_starts"][1:]]}


def _without_the_last_byte(row: dict[str, Any]) -> dict[str, Any]:
    starts, codes = row["provenance_starts"], row["provenance_codes"]
    last = len(row["text"].encode()) - 1
    return {**row, "provenance_starts": [*starts, last], "provenance_codes": [*codes, 0]}


def _of_another_text(row: dict[str, Any]) -> dict[str, Any]:
    """Return a document with another text, and with the digest and the name that are of this text."""
    text = row["text"] + "\n"
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    name = document_id(row["source"], row["path"], sha256)
    return {**row, "text": text, "text_sha256": sha256, "document_id": name}


def _in_other_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return documents in reverse, which say that this is their order."""
    return [row | {"order_in_source": index} for index, row in enumerate(rows[::-1])]


def _all(provenance: Provenance) -> Changes:
    return both_altered("enrich", column(ENRICHED, "provenance", every(provenance.value)))


def _last_replaced(text: str, found: str, other: str) -> str:
    return other.join(text.rsplit(found, 1))


def _documents(
    name: str,
    gate: str,
    field: str,
    change: Callable[[Any], Any],
    last: Callable[[Any], Any] | None = None,
) -> Offense:
    """Return the offense of a column's values of the first, the middle and the last document of both sources."""
    return in_both(name, [gate], "enrich", column(ENRICHED, field, at_places(change, last)))


ENRICH_OFFENSES = (
    _documents(
        "torn_chunk",
        "chunks_conserve_bytes",
        "chunk_ends",
        lambda ends: [*ends[:-1], ends[-1] - 1],
        lambda ends: [ends[0] - 1, *ends[1:]],
    ),
    _documents(
        "changed_text",
        "chunks_conserve_bytes",
        "text",
        lambda text: text.replace("e", "a", 1),
        lambda text: _last_replaced(text, "e", "a"),
    ),
    _documents("document_without_provenance", "provenance_on_every_document", "provenance", lambda _: ""),
    _documents(
        "code_of_no_provenance",
        "provenance_on_every_document",
        "provenance_codes",
        lambda codes: [99, *codes[1:]],
        lambda codes: [*codes[:-1], 99],
    ),
    in_both(
        "bytes_without_provenance",
        ["provenance_on_every_byte"],
        "enrich",
        rows_changed(ENRICHED, at_places(_without_a_byte, _without_the_last_byte)),
    ),
    Offense(
        "source_that_no_compiler_read",
        ("build_shares_are_in_band",),
        _built(min_build_aware_fraction=0.5),
        control=_built(),
        least=len(SOURCES),
    ),
    Offense(
        "source_of_which_a_compiler_read_the_first",
        ("build_shares_are_in_band",),
        after(_built(min_build_aware_fraction=0.5), both_altered("enrich", _only_the_first_compiled)),
        control=_built(),
        least=len(SOURCES),
    ),
    Offense(
        "tools_that_failed_after_the_first",
        ("build_shares_are_in_band",),
        after(
            _built(max_failed_fraction=0.5),
            both_altered("enrich", _after_the_first("provenance", Provenance.DEGRADED.value)),
            both_altered("enrich", _after_the_first("provenance_detail", "tool_failed")),
        ),
        control=_built(max_failed_fraction=0.5),
        least=len(SOURCES),
    ),
    Offense(
        "absolute_path_in_a_context",
        ("no_local_path_in_a_build_context",),
        after(_built(), _contexts("include", "/opt/canary/include")),
        control=after(_built(), _contexts("include", "other/include")),
        least=IN_BOTH,
    ),
    Offense(
        "broken_parses",
        ("degraded_share_is_in_band",),
        _all(Provenance.DEGRADED),
        control=_all(Provenance.SYNTAX_ONLY),
    ),
    of_part(
        "broken_parses_in_the_last_source",
        ["degraded_share_is_in_band"],
        ("enrich", SOURCES[-1]),
        rows_added(ENRICHED, _many_degraded),
        control=_all(Provenance.SYNTAX_ONLY),
        least=0.9,
    ),
    in_both(
        "document_of_another_text",
        ["no_row_lost_in_enrich"],
        "enrich",
        rows_changed(ENRICHED, at_places(_of_another_text)),
    ),
    *(
        one_each(
            f"{what}_without_a_compiler",
            ["no_row_lost_in_enrich"],
            "enrich",
            dict.fromkeys(SOURCES, ENRICHED),
            [fields(**values) for values in said],
        )
        for what, said in (("provenance", _COMPILED[:5]), ("symbols", _COMPILED[5:]))
    ),
    *(
        one_each(
            f"{what}_of_another_text",
            ["no_row_lost_in_enrich"],
            "enrich",
            dict.fromkeys(SOURCES, ENRICHED),
            [fields(**values) for values in changes],
        )
        for what, changes in _STRUCTURED
    ),
    copied_of_another("enrich", ENRICHED, {"text": lambda text: f"{text}\n"}),
    in_both(
        "compiled_documents_without_what_a_compiler_says",
        ["no_row_lost_in_enrich"],
        "enrich",
        column(ENRICHED, "provenance", at_places(lambda _: Provenance.BUILD_AWARE.value)),
        least=2 * IN_BOTH,  # as of a source without a build block too
    ),
    _documents("numbers_of_other_rows", "no_row_lost_in_enrich", "order_in_source", lambda number: number + 7),
    in_both(
        "headers_after_what_includes_them",
        ["no_row_lost_in_enrich"],
        "enrich",
        rows_changed(ENRICHED, _in_other_order),
        least=len(SOURCES),
    ),
    _documents("enriched_document_of_another_name", "no_row_lost_in_enrich", "text_sha256", lambda _: "0" * 64),
)
