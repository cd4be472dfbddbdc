"""Offenses for the gates of collect."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa

from pipeline.build.canaries.memory_build import Alteration, Changes, MadeOutput
from pipeline.build.canaries.offense import (
    IN_BOTH,
    SOURCES,
    Offense,
    after,
    altered,
    at_places,
    column,
    drop_without_cause,
    every,
    in_both,
    rows_changed,
    table_changed,
)
from pipeline.build.canaries.sound_sources import NUM_SOUND_FILES
from pipeline.contracts.part import LISTING_SUFFIX, PartJob
from pipeline.contracts.stage import AUDIT
from pipeline.core.errors import DigestError
from pipeline.core.schema import arrow_schema
from pipeline.core.table_names import (
    COMMIT_EVIDENCE,
    DROPPED,
    FILES,
    HISTORY,
    LISTED,
    LISTED_CHANGES,
    LISTED_EVIDENCE,
    TREE,
    VERSIONS,
)
from pipeline.stages.stages import tables_of

_REASONS = ("other_language", "excluded", "withdrawn", "link", "special", "submodule")
_NONE_LOST = "no_row_lost_in_collect"


def _fail(made: MadeOutput) -> NoReturn:
    raise DigestError(f"source {made.job.name}", "sha256 00", "the pinned one")


def _other_content(row: dict[str, Any]) -> dict[str, Any]:
    """Return a file with other bytes, and with the digests of these."""
    content = row["content"] + b"\n"
    git_id = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    sha256 = hashlib.sha256(content).hexdigest()
    return row | {"content": content, "git_blob_id": git_id, "blob_sha256": sha256, "num_bytes": len(content)}


_OTHER_FIELDS: dict[str, Callable[[Any], Any]] = {
    "git_blob_id": lambda _: "0" * 40,
    "blob_sha256": lambda _: "0" * 64,
    "num_bytes": lambda number: number + 1,
    "is_evidence": lambda _: True,
}
_PATH, _TREE_PATH = "changed.c", "build.txt"
_BEFORE, _AFTER, _TERMS = b"int a;\n", b"int b;\n", b"Terms\n"
_NUM_CHARS = 7
_COMMITS = [f"{number:040x}" for number in range(1, 7)]
_KEPT, _LATER, _MARKED, _LAST, _SMALL, _ROUTINE = _COMMITS
_LINKS = {_KEPT: "", _LATER: "undecodable_change", _MARKED: "marked_change", _LAST: "line_end_change"}
_NO_LINKS = {_SMALL: "small_change", _ROUTINE: "routine_commit"}
_EVIDENCE = ("COPYING", "LICENSE", "NOTICE")


def _git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%s" % (len(content), content), usedforsecurity=False).hexdigest()


def _history(source: str, revision: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of tables of a source with six changes of a file: one is kept, the others are dropped for their reasons."""
    subject, ids = "Change", {"old_blob_id": _git_id(_BEFORE), "new_blob_id": _git_id(_AFTER)}
    times = {"author_time": 1, "commit_time": 2, "num_diff_chars": _NUM_CHARS, "parent_hashes": []}
    named = {"source": source, "path": _PATH}
    stable = [hashlib.sha256("\0".join(each).encode()).hexdigest()[:16] for each in ((source,), (source, _PATH))]
    link = named | times | ids | {"subject": subject, "revision": revision, "has_rename_ambiguity": False}
    link |= dict(zip(("repo_stable_id", "filepath_stable_id"), stable, strict=True))
    listed = named | times | ids | {"subject_sha256": hashlib.sha256(subject.encode()).hexdigest()}
    reasons = [(commit, [reason] if reason else []) for commit, reason in (_LINKS | _NO_LINKS).items()]
    text = b"// commit: %s\n// path: %s\n//@@ before\n%s//@@ after\n%s"
    kept = _stored_file(
        source, revision, f"{_KEPT}:{_PATH}", text % (subject.encode(), _PATH.encode(), _BEFORE, _AFTER)
    )
    dropped = {commit: reason for commit, reason in (_LINKS | _NO_LINKS).items() if reason}
    contents = [(_PATH, _BEFORE), (_PATH, _AFTER), *((path, _TERMS) for path in _EVIDENCE)]
    evidence = [
        {"source": source, "commit_hash": _KEPT, "path": path, "git_blob_id": _git_id(_TERMS)} for path in _EVIDENCE
    ]
    tree_id = {"git_blob_id": _git_id(_TERMS), "num_bytes": len(_TERMS)}
    return {
        FILES: [kept],
        DROPPED: [_dropped(source, f"{commit}:{_PATH}", reason) for commit, reason in sorted(dropped.items())],
        HISTORY: [link | {"commit_hash": at, "file_local_commit_index": index} for index, at in enumerate(_LINKS)],
        VERSIONS: [_stored_file(source, revision, path, content) for path, content in contents],
        COMMIT_EVIDENCE: evidence,
        TREE: [{"path": _TREE_PATH, "content": _TERMS}],
        LISTED: [_listed(source, f"{commit}%3A{_PATH}") for commit in _COMMITS]
        + [_listed(source, _TREE_PATH) | tree_id],
        LISTED_CHANGES: [listed | {"commit_hash": commit, "reasons": found} for commit, found in reasons],
        LISTED_EVIDENCE: [each | {"num_bytes": len(_TERMS)} for each in evidence],
    }


def _stored_file(source: str, revision: str, path: str, content: bytes) -> dict[str, Any]:
    return _other_content(
        {"content": content[:-1], "source": source, "revision": revision, "path": path, "is_evidence": False}
    )


def _listed(source: str, path: str) -> dict[str, Any]:
    return {"source": source, "path": path, "is_optional": True}


def _dropped(source: str, path: str, reason: str) -> dict[str, Any]:
    named = {"source": source, "path": path, "record_id": f"{source}/{path}", "detail": reason}
    return named | {"reason": reason, "num_bytes": _NUM_CHARS}


def _falsify(tables: dict[str, list[dict[str, Any]]]) -> None:
    """Turn nine rows of a history into others, or take them out, so that git contradicts each once."""
    _, later, marked, _ = tables[HISTORY]
    tables[HISTORY].pop()
    later["author_time"] += 1
    marked["subject"] = "Another"
    *_, small, routine = tables[DROPPED]
    small["reason"], routine["reason"] = "not_modified", "large_change"
    del tables[COMMIT_EVIDENCE][0]
    tables[COMMIT_EVIDENCE][0]["git_blob_id"] = _git_id(_BEFORE)
    tables[VERSIONS].pop()
    tables[TREE][0]["content"] = _BEFORE


_NUM_FALSE = 9
"""Rows of a source that `_falsify` changes."""


def _with_histories(is_false: bool) -> Changes:
    """Return the change of sources that have a history, and a file for a build, besides what they hold."""
    parts = [Alteration("collect", AUDIT, job=_asking_for_histories)]
    for source in SOURCES:
        parts += [Alteration("collect", each, partial(_give_history, source, is_false)) for each in _parts(source)]
    return Changes(tuple(parts))


def _parts(source: str) -> tuple[str, str]:
    return source, f"{source}{LISTING_SUFFIX}"


def _give_history(source: str, is_false: bool, made: MadeOutput) -> MadeOutput:
    """Return what a part made with more rows, sorted, and with tables that it had not, as its kind declares them."""
    rows = _history(source, made.job.identity["revision"])
    if is_false:
        _falsify(rows)
    tables = dict(made.output.tables)
    for declared in tables_of("collect/part" if FILES in tables else "collect/listing"):
        more = pa.Table.from_pylist(rows.get(declared.name, []), schema=arrow_schema(declared.record))
        tables[declared.name] = pa.concat_tables([more, tables.get(declared.name, more.slice(0, 0))])
    return replace(made, output=replace(made.output, tables=tables))


def _asking_for_histories(job: PartJob) -> PartJob:
    """Return the audit of a build that asks for histories, changes and a compiler."""
    asked = {"history": True, "build": {}}
    pins = {name: pin | asked for name, pin in job.identity["pins"].items()}
    inputs: dict[str, Any] = dict(job.inputs)
    for label in (f"after/{source}" for source in SOURCES):
        inputs[label] = replace(inputs[label], identity={"changes": True})
    return replace(job, inputs=inputs, identity={**job.identity, "pins": pins, "changes": True})


_EMPTY_LISTING = table_changed(LISTED, lambda table: table.slice(0, 0))

COLLECT_OFFENSES = (
    Offense(
        "source_of_other_bytes",
        ("every_pin_verified",),
        Changes(tuple(Alteration("collect", source, _fail) for source in SOURCES)),
        least=len(SOURCES),
    ),
    in_both(
        "file_without_revision",
        ["every_file_has_a_revision"],
        "collect",
        column(FILES, "revision", at_places(lambda _: "")),
    ),
    Offense("source_that_was_not_read", ("every_pin_verified",), Changes(pin=lambda _: None), least=len(SOURCES)),
    Offense(
        "pin_without_license_metadata",
        ("every_pin_declares_a_license",),
        Changes(pin=lambda pin: pin.model_copy(update={"declared_license": ""})),
        least=len(SOURCES),
    ),
    in_both(
        "corpus_without_code",
        ["sources_hold_code"],
        "collect",
        column(FILES, "is_evidence", every(True)),
        least=NUM_SOUND_FILES,
    ),
    *(drop_without_cause("collect", FILES, [reason]) for reason in _REASONS),
    # By the size that it says, and by that which the source lists.
    drop_without_cause("collect", FILES, ["too_large"], 2 * IN_BOTH),
    in_both(
        "content_beside_other_digests",
        [_NONE_LOST],
        "collect",
        column(FILES, "content", at_places(lambda content: content + b"\n")),
    ),
    *(
        in_both(f"{name}_of_another_file", [_NONE_LOST], "collect", column(FILES, name, at_places(change)))
        for name, change in _OTHER_FIELDS.items()
    ),
    in_both("content_of_another_file", [_NONE_LOST], "collect", rows_changed(FILES, at_places(_other_content))),
    Offense(
        "histories_that_git_does_not_give",
        (_NONE_LOST,),
        _with_histories(is_false=True),
        _with_histories(is_false=False),
        least=_NUM_FALSE * len(SOURCES),
    ),
    Offense(
        "files_that_no_listing_names",
        (_NONE_LOST,),
        after(*(altered(("collect", f"{source}{LISTING_SUFFIX}"), _EMPTY_LISTING) for source in SOURCES)),
        least=NUM_SOUND_FILES,
    ),
)
