"""Offenses for the gates of enrich."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pipeline.build.canaries.memory_build import Alteration, Changes, MadeOutput
from pipeline.build.canaries.offense import (
    Offense,
    after,
    altered,
    column,
    every,
    first,
    of_part,
    row_from_nowhere,
    row_lost,
)
from pipeline.build.canaries.sound_sources import SOUND, SOUND_HELD_OUT
from pipeline.core.records import Provenance
from pipeline.core.table_names import ENRICHED

_CONTEXT = {"unit": "first.cpp", "compiler": "c++", "options": ["-O2"]}


def _built(min_build_aware_fraction: float) -> Changes:
    """Return the change of a source with a `build` block that expects a share of documents to be compiled."""
    block = {"cmake": True, "min_build_aware_fraction": min_build_aware_fraction}

    def change(made: MadeOutput) -> MadeOutput:
        return replace(made, job=replace(made.job, identity={**made.job.identity, "build": block}))

    return Changes((Alteration("enrich", SOUND, change),))


def _context(**fields: Any) -> Changes:
    return altered("enrich", column(ENRICHED, "build_context", first(lambda _: json.dumps({**_CONTEXT, **fields}))))


def _texts(change: Callable[[str], str]) -> Callable[[list[str]], list[str]]:
    return first(change)


def _all(provenance: Provenance) -> Changes:
    change = column(ENRICHED, "provenance", every(provenance.value))
    return after(*(altered(("enrich", name), change) for name in (SOUND, SOUND_HELD_OUT)))


ENRICH_OFFENSES = (
    of_part(
        "torn_chunk",
        ["chunks_conserve_bytes"],
        "enrich",
        column(ENRICHED, "chunk_ends", first(lambda ends: [*ends[:-1], ends[-1] - 1])),
    ),
    of_part(
        "changed_text",
        ["chunks_conserve_bytes"],
        "enrich",
        column(ENRICHED, "text", first(lambda text: text.replace("e", "a", 1))),
    ),
    of_part(
        "document_without_provenance",
        ["provenance_on_every_document"],
        "enrich",
        column(ENRICHED, "provenance", first(lambda _: "")),
    ),
    of_part(
        "bytes_without_provenance",
        ["provenance_on_every_byte"],
        "enrich",
        column(ENRICHED, "provenance_codes", first(lambda codes: [0] * len(codes))),
    ),
    Offense("source_that_no_compiler_read", ("build_shares_are_in_band",), _built(0.5), control=_built(0.0)),
    Offense(
        "absolute_path_in_a_context",
        ("no_local_path_in_a_build_context",),
        after(_built(0.0), _context(include=["/opt/canary/include"])),
        control=after(_built(0.0), _context(include=["include"])),
    ),
    Offense(
        "broken_parses",
        ("degraded_share_is_in_band",),
        _all(Provenance.DEGRADED),
        control=_all(Provenance.SYNTAX_ONLY),
    ),
    row_lost("enrich", ENRICHED),
    row_from_nowhere("enrich", ENRICHED),
)
