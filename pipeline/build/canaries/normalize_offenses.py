"""Offenses for the gates of normalize."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import Any, cast

from pipeline.build.canaries.memory_build import Alteration, Changes, MadeOutput, MemoryObject
from pipeline.build.canaries.offense import (
    IN_BOTH,
    NUM_PLACES,
    SOURCES,
    Offense,
    after,
    altered,
    at_places,
    both_altered,
    column,
    drop_without_cause,
    every,
    fields,
    in_audit,
    in_both,
    of_part,
    one_each,
    rows_added,
    rows_changed,
    table_changed,
)
from pipeline.build.canaries.sound_sources import NUM_SOUND_DOCUMENTS, sound_code
from pipeline.build.oracles.drops.drop_rules import DROP_RULES
from pipeline.contracts.part import DUPLICATES_PART, PartOutput
from pipeline.core.records import LicenseEvidence, Split
from pipeline.core.table_names import DOCUMENTS, DROPPED, DUPLICATES, FILES, KEPT
from pipeline.pins.decisions import Decision
from pipeline.stages.normalize.contamination.evaluation_items import shipped_items
from pipeline.stages.normalize.duplicates.duplicates import SIGNATURES

_COMPARED = ("normalize", DUPLICATES_PART)
_NUM_DROPPED = 100
_NUM_BYTES_INSIDE = 5_000
_OF_NO_BAND = ("a_of_no_band", "z_of_no_band")
"""The first and the last reason of a report."""


def _dropped(count: int, reason: str, detail: str = "none") -> list[dict[str, Any]]:
    row = {"source": "canary-sound", "num_bytes": 1, "reason": reason, "detail": detail}
    absent = {"license": None, "text_sha256": None}
    return [{**row, **absent, "path": f"{reason}/{n}.cpp", "record_id": f"{reason}/{n}"} for n in range(count)]


def _many_dropped(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for reason in _OF_NO_BAND for row in _dropped(_NUM_DROPPED, reason)]


def _copies_held_out(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Hold out what was dropped as a copy, and train on all else."""
    return [row | {"split": Split.HELD_OUT if "_copy" in row["path"] else Split.TRAIN} for row in rows]


def _copy_kept(output: PartOutput) -> PartOutput:
    """Keep what was dropped as a copy."""
    lost = output.tables[DUPLICATES].to_pylist()
    kept = rows_added(KEPT, lambda rows: [{"document_id": row["document_id"], "source": row["source"]} for row in lost])
    return table_changed(DUPLICATES, lambda table: table.slice(0, 0))(kept(output))


def _copy_hidden(made: MadeOutput) -> MadeOutput:
    """Keep what was dropped as a copy, where the digests that copies are found by call each text another."""
    inputs = dict(made.job.inputs)
    for name in SOURCES:
        stored = cast(MemoryObject, inputs[name])
        renamed = rows_changed(SIGNATURES, lambda rows: [row | {"text_sha256": row["document_id"]} for row in rows])
        inputs[name] = replace(stored, output=renamed(stored.output))
    return MadeOutput(replace(made.job, inputs=inputs), _copy_kept(made.output))


def _with_text_inside(made: MadeOutput) -> MadeOutput:
    """Make the last document of each source what its first one is, and more."""
    inputs = dict(made.job.inputs)
    for name in SOURCES:
        part = sound_code(name, _NUM_BYTES_INSIDE)
        more = (sound_code(f"{other}_of_{name}", _NUM_BYTES_INSIDE) for other in ("second", "third", "fourth"))
        ends = partial(_with_ends, part, "".join([part, *more]))
        stored = cast(MemoryObject, inputs[name])
        inputs[name] = replace(stored, output=column(DOCUMENTS, "text", ends)(stored.output))
    return replace(made, job=replace(made.job, inputs=inputs))


def _with_ends(first: str, last: str, texts: list[str]) -> list[str]:
    return [first, *texts[1:-1], last]


def _documents(
    name: str,
    gates: list[str],
    field: str,
    change: Callable[[str], str],
    last: Callable[[str], str] | None = None,
) -> Offense:
    """Return the offense of a column's values of the first, the middle and the last document of both sources."""
    return in_both(name, gates, "normalize", column(DOCUMENTS, field, at_places(change, last)))


def _tagged(row: dict[str, Any]) -> dict[str, Any]:
    """Return a document that says of itself that a tag in it names its license, which another one does: as long as before."""
    tag = "// SPDX-License-Identifier: Zlib\n"
    detail = f"{row['path']}:1: SPDX-License-Identifier: MIT"
    return row | {"license_evidence": "file", "license_detail": detail, "text": tag + row["text"][len(tag) :]}


def _in_languages(of_others: str) -> Changes:
    """Return the change of pins that expect C++ alone, and of documents: the first is C++, the others have another suffix."""
    pins = Changes(pin=lambda pin: pin.model_copy(update={"languages": {"cpp": (0.9, 1.0)}}))

    def paths(found: list[str]) -> list[str]:
        suffixes = [".cpp", *[of_others] * (len(found) - 1)]
        return [path.rpartition(".")[0] + suffix for path, suffix in zip(found, suffixes, strict=True)]

    return after(pins, both_altered("normalize", column(DOCUMENTS, "path", paths)))


def _decided(**fields: Any) -> Changes:
    """Return the change of a build whose process decides about every file by itself: nobody asked for it."""
    who: dict[str, Any] = {"person": "nobody", "reason": "An offense."}
    return Changes(decisions=tuple(Decision(source=name, path="**", **fields, **who) for name in SOURCES))


_RESTRICTIONS = (
    "Governed by the GNU General Public License.",
    "GPLv2 or later",
    "Governed by the Mozilla Public License.",
    "Governed by the Netscape Public License.",
    "Governed by the Eclipse Public License.",
    "Under the CDDL",
    "CC BY-NC",
    "Commons Clause",
    "Sleepycat License",
    "Strictly confidential",
    "Do not distribute.",
    "Numerical Recipes software",
    "Licensed materials",
    "ITAR controlled",
    "No AI training",
    "Alle Rechte vorbehalten",
    "Weitergabe dieser Datei verboten.",
    "Not to leave the building.",
)
"""Words of each entry of the table of restrictions, which no other entry finds."""
_NOTICES = (
    "".join(f"// {words}\n" for words in _RESTRICTIONS)
    + "/* This file may not be\n * used for commercial purposes. */\n"
)
_GIBBERISH = (
    ("r\u00c3\u00a9sum", "a\x85b"),
    ("\u00c2\u00a9 2003", "a\ue000b"),
    ("don\u00e2\u20ac\u2122t", "\uff71\uff72"),
    ("\u00d0\u00b0\u00d0\u00b1\u00d0\u00b2", "\ufffd"),
    ("\u951f\u65a4\u62f7", "a\u0431"),
    ("\u7e3a\u3042\u7e67\u3044\u7e5d\u3046", "a\u2500b"),
)
"""Shapes of wrongly decoded text, one of each kind, and with them those that only text of legacy encodings may not have."""
_OF_NO_LANGUAGE = " \u0103 \u0142 \u00f8 \u00e3 \u0151 \u011f \u01b0 \u0123 \u0175 \u00fe"


def _with_restrictions(made: MadeOutput) -> MadeOutput:
    """Make documents, and a license text beside those that state no license, with notices of restrictions."""
    files = cast(MemoryObject, made.job.inputs["files"])
    notice = {"path": "LICENSE", "content": _NOTICES.encode()}
    files = replace(files, output=rows_added(FILES, lambda rows: [rows[0] | notice])(files.output))
    change = at_places(lambda text: f"{_NOTICES}{text}", lambda text: f"{text}{_NOTICES}")
    output = column(DOCUMENTS, "license_evidence", every(LicenseEvidence.LICENSE_TEXT))(made.output)
    job = replace(made.job, inputs={**made.job.inputs, "files": files})
    return MadeOutput(job, column(DOCUMENTS, "text", change)(output))


def _badly_decoded(shape: str, of_legacy: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the change of a document: it was read as another encoding, by which its letters are of no language either."""
    words = f"// {shape}\n// {of_legacy}\n//{_OF_NO_LANGUAGE}\n"
    return fields(encoding="windows_1252", text=lambda text: text + words)


_NONE_LOST = ("no_row_lost_in_normalize",)
_NEAR = {"reason": "near_duplicate", "jaccard": 0.95}
_KEEPER = ("keeper_id", "keeper_source", "keeper_path", "cluster_id")
_OWN = ("document_id", "source", "path", "document_id")
_OTHERWISE: tuple[dict[str, Any], ...] = ({"num_bytes": 1}, {"record_id": "0" * 64}, {"text_sha256": "0" * 64})
_Rows = list[dict[str, Any]]
_LONG = 400_000
"""Bytes beside which the sound sources are few."""
_FOR_LICENSES = ("license_unknown", "license_refused", "license_quarantined")
_IMPLAUSIBLE = (("email", "price"), ("network-address", "price"), ("path", "price"), ("secret", "return price;"))
_TORN = (("email", "ada@host.org)"), ("secret", 'price"'), ("secret", "price*/"), ("secret", " price"))
"""Words of placeholders, and what none of them can stand for: it is something else, or has a sign of what is beside it."""


def _kept_by(rows: _Rows, keepers: _Rows, names: tuple[str, ...]) -> _Rows:
    """Return copies with the keepers that some columns of other copies name."""
    named = ({name: keeper[other] for name, other in zip(_KEEPER, names, strict=True)} for keeper in keepers)
    return [row | columns for row, columns in zip(rows, named, strict=True)]


def _of_what_is_not_kept(rows: _Rows) -> _Rows:
    return [row | _NEAR for row in _kept_by(rows, rows[::-1], _OWN)]


def _of_themselves(rows: _Rows) -> _Rows:
    return [row | _NEAR for row in _kept_by(rows, rows, _OWN)]


def _copies(name: str, change: Callable[[_Rows], _Rows]) -> Offense:
    return of_part(name, _NONE_LOST, _COMPARED, rows_changed(DUPLICATES, change), least=len(SOURCES))


def _each(**values: Any) -> Callable[[_Rows], _Rows]:
    return lambda rows: [fields(**values)(row) for row in rows]


def _of_themselves_and_kept(output: PartOutput) -> PartOutput:
    """Make each copy one of itself, and keep it: what is dropped and kept is unknown once, and a copy of itself."""
    lost = [
        {"document_id": row["document_id"], "source": row["source"]} for row in output.tables[DUPLICATES].to_pylist()
    ]
    kept = rows_changed(KEPT, lambda rows: sorted([*rows, *lost], key=lambda row: str(row["document_id"])))
    return kept(rows_changed(DUPLICATES, _of_themselves)(output))


def _with_rows(stored: MemoryObject, table: str, rows: _Rows) -> MemoryObject:
    return replace(stored, output=rows_changed(table, lambda _: rows)(stored.output))


def _redacted(stretches: Mapping[str, Sequence[tuple[str, str]]], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the documents and files of each source: the last documents are each a placeholder for the stretch that its file is."""
    changed: dict[str, Any] = {}
    for source, each in stretches.items():
        cleaned, collected = inputs[f"after/{source}"], inputs[f"before/{source}"]
        rows = cleaned.output.tables[DOCUMENTS].to_pylist()
        first = len(rows) - len(each)
        contents = {row["path"]: value.encode() for row, (_, value) in zip(rows[first:], each, strict=True)}
        redacted = [
            row | {"text": f"<redacted-{word}-1>", "num_redactions": 1}
            for row, (word, _) in zip(rows[first:], each, strict=True)
        ]
        files = [
            row | {"content": contents.get(row["path"], row["content"])}
            for row in collected.output.tables[FILES].to_pylist()
        ]
        changed[f"after/{source}"] = _with_rows(cleaned, DOCUMENTS, [*rows[:first], *redacted])
        changed[f"before/{source}"] = _with_rows(collected, FILES, files)
    return changed


def _misstated(rows: _Rows) -> _Rows:
    """Return drops of which each says something else than its file."""
    return [row | fault for row, fault in zip(rows, cycle(_OTHERWISE), strict=False)]


_CONTAMINATED = drop_without_cause("normalize", DOCUMENTS, ["contaminated"])


# Assembled here, so that no whole secret is in this repository.
_SECRET = "AKIA" + "QWERTYUIOPASDFGH"
_SECRET_DROPS: dict[str, Callable[[_Rows], _Rows]] = {
    "detail": lambda _: _dropped(NUM_PLACES, "of_no_band", _SECRET),
    "path": lambda _: [row | {"path": f"{_SECRET}/{row['path']}"} for row in _dropped(NUM_PLACES, "of_no_band")],
}

NORMALIZE_OFFENSES = (
    _documents(
        "invented_character",
        ["decoding_loses_nothing"],
        "text",
        lambda text: text.replace("e", "\ufffd", 1),
        lambda text: f"{text}\ufffd",
    ),
    _documents("copyleft_document", ["every_document_is_licensed"], "license", lambda _: "GPL-2.0-only"),
    _documents("license_of_another_class", ["every_document_is_licensed"], "license_class", lambda _: "tagged"),
    _documents(
        "document_without_evidence_of_its_license",
        ["every_document_is_licensed"],
        "license_evidence",
        lambda _: "none",
    ),
    _documents(
        "secret_in_a_text",
        ["no_secret_is_left", "no_known_secret_is_left"],
        "text",
        lambda text: f"// {_SECRET}\n{text}",
        lambda text: f"{text}// {_SECRET}\n",
    ),
    *(
        _documents(name, ["no_known_secret_is_left"], field, lambda value: f"{_SECRET} AND {value}")
        for name, field in {"secret_in_a_path": "path", "secret_in_the_evidence_of_a_license": "license_detail"}.items()
    ),
    *(
        in_both(f"secret_in_the_{field}_of_a_drop", ["no_known_secret_is_left"], "normalize", rows_added(DROPPED, rows))
        for field, rows in _SECRET_DROPS.items()
    ),
    Offense(
        "restriction_in_a_text",
        ("no_restriction_is_left",),
        Changes(tuple(Alteration("normalize", source, _with_restrictions) for source in SOURCES)),
        least=IN_BOTH * (1 + len(_RESTRICTIONS)) + len(SOURCES),
    ),
    replace(
        one_each(
            "wrongly_decoded_text",
            ["no_gibberish_is_left"],
            "normalize",
            dict.fromkeys(SOURCES, DOCUMENTS),
            [_badly_decoded(*shapes) for shapes in _GIBBERISH],
        ),
        least=3 * len(_GIBBERISH),
    ),
    _documents(
        "solution_in_a_text",
        ["no_evaluation_item_is_left"],
        "text",
        lambda text: shipped_items()[0].solution + text,
        lambda text: text + shipped_items()[-1].solution,
    ),
    Offense(
        "copy_that_was_kept",
        ("no_exact_duplicate_is_left",),
        Changes((Alteration(*_COMPARED, _copy_hidden),)),
        least=len(SOURCES),
    ),
    Offense(
        "document_inside_another",
        ("no_text_inside_another_is_left",),
        Changes((Alteration(*_COMPARED, _with_text_inside),)),
        least=len(SOURCES),
    ),
    in_both(
        "many_files_dropped_by_one_rule",
        ["drops_are_in_their_bands"],
        "normalize",
        rows_added(DROPPED, _many_dropped),
        control=altered(_COMPARED, _copy_kept),
        least=len(_OF_NO_BAND),
    ),
    Offense(
        "source_in_another_language",
        ("languages_are_in_their_bands",),
        _in_languages(".c"),
        control=_in_languages(".cpp"),
        least=len(SOURCES),
    ),
    of_part(
        "every_document_dropped",
        ["documents_are_kept"],
        _COMPARED,
        table_changed(KEPT, lambda table: table.slice(0, 0)),
        least=NUM_SOUND_DOCUMENTS,
    ),
    _documents("license_of_no_decision", ["no_row_lost_in_normalize"], "license_evidence", lambda _: "decision"),
    one_each(
        "license_of_another_file",
        ["no_row_lost_in_normalize"],
        "normalize",
        dict.fromkeys(SOURCES, DOCUMENTS),
        [
            fields(license="Zlib"),
            fields(license_branch="Zlib"),
            fields(license_branch="MIT AND Zlib"),
            fields(license="MIT AND Zlib"),
            fields(license_class="tagged"),
            fields(license_detail=lambda detail: f"{detail}\npin: declared_license = Zlib"),
            _tagged,
        ],
    ),
    Offense(
        "license_that_nobody_concluded",
        ("no_row_lost_in_normalize",),
        _decided(license="ISC"),
        least=NUM_SOUND_DOCUMENTS + len(SOURCES),
    ),
    Offense(
        "waiver_that_nobody_asked_for",
        ("no_row_lost_in_normalize",),
        _decided(waive="secret", line=1),
        least=len(SOURCES),
    ),
    # As many reasons as there are places, so that each costs a part of a run: a reason that is not judged is missing in the number,
    # in which each file counts twice, one dropped for its license thrice, and the keepers of copies once more.
    *(
        drop_without_cause(
            "normalize", DOCUMENTS, tuple(DROP_RULES)[first : first + NUM_PLACES], 2 * IN_BOTH + len(SOURCES)
        )
        for first in range(0, len(DROP_RULES), NUM_PLACES)
    ),
    _documents("document_of_another_name", ["no_row_lost_in_normalize"], "text_sha256", lambda _: "0" * 64),
    _documents("document_of_another_revision", ["no_row_lost_in_normalize"], "revision", lambda _: "0"),
    of_part(
        "kept_as_of_another_source",
        ["no_row_lost_in_normalize"],
        _COMPARED,
        column(KEPT, "source", at_places(lambda _: "other")),
        least=NUM_PLACES,
    ),
    Offense(
        "copies_that_are_held_out_of_what_is_trained_on",
        ("no_row_lost_in_normalize",),
        both_altered("normalize", rows_changed(DOCUMENTS, _copies_held_out)),
        least=len(SOURCES),
    ),
    _documents("document_of_another_file", ["no_row_lost_in_normalize"], "blob_sha256", lambda _: "0" * 64),
    _copies("copies_of_another_text", lambda rows: _kept_by(rows, rows[::-1], _KEEPER)),
    _copies("copies_of_what_is_not_kept", _of_what_is_not_kept),
    of_part("copies_of_themselves", _NONE_LOST, _COMPARED, _of_themselves_and_kept, least=2 * len(SOURCES)),
    _copies("copies_whose_keepers_are_called_otherwise", _each(keeper_path=lambda path: f"{path}.c")),
    _copies("copies_of_another_size", _each(num_bytes=lambda number: number + 1)),
    _copies("copies_of_another_cluster", _each(cluster_id="0")),
    _copies("copies_of_nothing", _each(num_keepers=0)),
    _copies("copies_without_likeness", _each(**_NEAR | {"jaccard": 0.0})),
    _copies("copies_that_are_not_alike", _each(**_NEAR | {"jaccard": 1e-9})),
    _copies("near_copies_of_another_text", lambda rows: [row | _NEAR for row in _kept_by(rows, rows[::-1], _KEEPER)]),
    _copies("copyleft_copies_of_what_is_not_copyleft", _each(reason="copyleft_copy", jaccard=0.95)),
    _copies("copies_of_more_than_all", _each(**_NEAR | {"jaccard": 1.5})),
    drop_without_cause("normalize", DOCUMENTS, _FOR_LICENSES, 3 * IN_BOTH + len(SOURCES)),
    drop_without_cause("normalize", DOCUMENTS, ("contaminated", "unscrubbable"), 2 * IN_BOTH + len(SOURCES)),
    Offense(
        "drops_that_are_misstated",
        _NONE_LOST,
        after(_CONTAMINATED.changes, both_altered("normalize", rows_changed(DROPPED, _misstated))),
        least=2 * IN_BOTH + len(SOURCES),
    ),
    in_audit(
        "placeholders_of_what_they_do_not_say",
        _NONE_LOST,
        "normalize",
        partial(_redacted, dict(zip(SOURCES, (_IMPLAUSIBLE, _TORN), strict=True))),
        least=len((*_IMPLAUSIBLE, *_TORN)),
    ),
    *(
        in_audit(
            f"placeholder_of_{source}",
            ["redactions_are_few"],
            "normalize",
            partial(_redacted, {source: [("secret", "x" * _LONG)]}),
            least=0.9,
        )
        for source in SOURCES
    ),
)
