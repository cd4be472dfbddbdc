"""Links, drops and evidence of a history that git contradicts are seen, each by its name; a sound history is believed."""

from collections.abc import Callable
from typing import Any

import pytest

from pipeline.build.oracles.audited_history import misrecorded_history
from pipeline.build.stage_objects import evidence_of, parts_of
from pipeline.store.store import Store
from tests.pipeline.build.oracles.test_audited_changes import Altered, Rows

ROUTINE = "ecf8a4bf0be729d6cb24e5fe8e279068320c48a9"


def misrecorded(store: Store, **tables: Callable[[Rows], Rows]) -> list[str]:
    """Return the paths that the oracle names in the made history, some tables of which have other rows."""
    stage = store.read(store.ref("tiny", "collect") or "")
    part, listing = store.read(parts_of(stage)["loom"]), store.read(evidence_of(stage)["loom.listing"])
    request = {"pins": {"loom": part.identity}, "withdrawn": [], "limits": {"max_file_bytes": 1 << 20}}
    return [path for _, path in misrecorded_history("loom", Altered(part, **tables), listing, request)]


def without(index: int) -> Callable[[Rows], Rows]:
    return lambda rows: [*rows[:index], *rows[index + 1 :]]


def other(index: int, name: str, value: Any) -> Callable[[Rows], Rows]:
    return lambda rows: [row | ({name: value} if number == index else {}) for number, row in enumerate(rows)]


def called(reason: str, **fields: Any) -> Callable[[Rows], Rows]:
    """Return drops of which the one of the routine commit has another reason."""
    return lambda rows: [row | ({"reason": reason} | fields if row["path"].startswith(ROUTINE) else {}) for row in rows]


def test_the_made_history_is_what_git_says(tiny_store: Store) -> None:
    assert misrecorded(tiny_store) == []


@pytest.mark.parametrize(
    "tables",
    [
        *({"history": without(index)} for index in (0, 5, 15)),
        *(
            {"history": other(3, name, value)}
            for name, value in {
                "commit_hash": "0" * 40,
                "author_time": 1,
                "commit_time": 1,
                "subject": "Other",
                "old_blob_id": "0" * 40,
                "new_blob_id": "0" * 40,
                "num_diff_chars": 51,
                "parent_hashes": [],
                "file_local_commit_index": 9,
                "filepath_stable_id": "0",
                "repo_stable_id": "0",
                "revision": "0",
            }.items()
        ),
        *({"commit_evidence": without(index)} for index in (0, 2, 4)),
        {"commit_evidence": lambda rows: []},
        {"commit_evidence": other(2, "git_blob_id", None)},
        {"commit_evidence": other(2, "git_blob_id", "0" * 40)},
        {"commit_evidence": other(2, "path", "NOTICE")},
        {"commit_evidence": lambda rows: [*rows, rows[-1]]},
        {"versions": lambda rows: [row for row in rows if row["path"] != "LICENSE"]},
        *(
            {"dropped": called(reason)}
            for reason in ("not_modified", "large_commit", "binary_change", "marked_change", "undecodable_change")
        ),
        {"dropped": called("small_change", num_bytes=49)},
        {"dropped": called("large_change", num_bytes=50_001)},
    ],
)
def test_what_git_contradicts_is_seen(tiny_store: Store, tables: dict[str, Callable[[Rows], Rows]]) -> None:
    assert misrecorded(tiny_store, **tables)


def test_a_subject_that_a_withdrawal_took_away_is_believed_and_no_other(tiny_store: Store) -> None:
    stage = tiny_store.read(tiny_store.ref("tiny", "collect") or "")
    part, listing = tiny_store.read(parts_of(stage)["loom"]), tiny_store.read(evidence_of(stage)["loom.listing"])
    silent = Altered(part, history=other(3, "subject", ""))
    request = {"pins": {"loom": part.identity}, "limits": {"max_file_bytes": 1 << 20}}

    assert not list(misrecorded_history("loom", silent, listing, request | {"withdrawn": ["loom/src/x.c"]}))
    assert list(misrecorded_history("loom", silent, listing, request | {"withdrawn": ["odds"]}))


def test_a_source_without_a_history_has_none_to_judge(tiny_store: Store) -> None:
    empty = Altered(tiny_store.read(tiny_store.ref("tiny", "collect") or ""), dropped=lambda rows: [])

    assert list(misrecorded_history("loom", empty, empty, {"pins": {"loom": {}}})) == []
