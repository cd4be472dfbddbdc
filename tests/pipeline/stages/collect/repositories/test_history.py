"""History of a git repository: the modifications of each file, their order, and what is counted and accepted."""

from collections.abc import Callable
from typing import Any

import pytest

from pipeline.core.records import FileModification
from pipeline.core.schema import check_table
from pipeline.stages.collect.kinds.git import GitPin
from pipeline.stages.collect.params import RetryPolicy
from pipeline.stages.collect.repositories.history import Change, is_accepted
from pipeline.stages.collect.stage import run
from tests.pipeline.stages.collect.conftest import Create
from tests.support.git_repository import Repository

Chains = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def chains(surroundings: Create, repository: Repository, retry: RetryPolicy) -> Chains:
    """The rows of the history of a commit, HEAD unless given."""

    def collect(commit: str = "", name: str = "demo", **more: object) -> list[dict[str, Any]]:
        commit = commit or repository.git("rev-parse", "HEAD")
        pin = GitPin(name=name, url=repository.url, commit=commit, history=True, **more)  # type: ignore[arg-type]
        context = surroundings(pin)
        assert run(context, retry).failures == {}
        table = context.made[name].tables["history.parquet"]
        check_table(table, FileModification, "history")
        assert context.made[name].report.measures["num_modifications"] == table.num_rows
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows

    return collect


def text(number: int) -> str:
    """A text whose neighbors differ in one long line."""
    return f"int value = {number}; // a line that is long enough for a diff of more than fifty characters\n"


def test_a_chain_is_every_modification_of_a_file_oldest_first(repository: Repository, chains: Chains) -> None:
    first = repository.commit("Begin", a__c=text(0), b__c=text(0))
    second = repository.commit("Change a", a__c=text(1))
    third = repository.commit("Change both", a__c=text(2), b__c=text(1))
    found = chains()
    assert [
        (row["path"], row["file_local_commit_index"], row["commit_hash"], row["parent_hashes"]) for row in found
    ] == [
        ("a.c", 0, second, [first]),
        ("a.c", 1, third, [second]),
        ("b.c", 0, third, [second]),
    ]
    assert [row["subject"] for row in found] == ["Change a", "Change both", "Change both"]
    assert [row["commit_time"] - row["author_time"] for row in found] == [60, 60, 60]
    assert found[0]["author_time"] == 1_000_000_000 + 2 * 3600
    blobs = [repository.git("hash-object", "--stdin", stdin=text(number).encode()) for number in range(3)]
    assert [(row["old_blob_id"], row["new_blob_id"]) for row in found[:2]] == [tuple(blobs[:2]), tuple(blobs[1:])]
    assert not any(row["has_rename_ambiguity"] for row in found)


def test_the_size_of_a_diff_is_that_of_its_hunks_in_characters(repository: Repository, chains: Chains) -> None:
    repository.commit(a__c="int a;\n" + text(0).replace("long", "läng"))
    repository.commit(a__c="int a;\n" + text(1).replace("long", "läng"))
    (row,) = chains()
    shown = repository.git("diff", "--no-color", "HEAD~1", "HEAD").encode("utf-8", "surrogateescape").decode()
    assert row["num_diff_chars"] == len(shown[shown.index("@@") :]) + 1


def test_the_index_advances_for_accepted_modifications_only(repository: Repository, chains: Chains) -> None:
    repository.commit(**{f"{name}__c": text(0) for name in "abcdef"}, tiny__c="a\n")
    kept = [repository.commit("Fix a", a__c=text(1))]
    repository.commit("Sweep", **{f"{name}__c": text(2) for name in "abcdef"})
    repository.commit("clang-format", a__c=text(3))
    repository.commit("Bump version to 1.2", a__c=text(4))
    repository.commit("Tiny", tiny__c="b\n")
    repository.commit("Huge", a__c=text(5) * 1000)
    kept.append(repository.commit("Fix five", **{f"{name}__c": text(6) for name in "bcdef"}))
    repository.write("notes.txt", b"x" * 100)
    kept.append(repository.commit("Fix a again", a__c=text(7) + text(5) * 999))
    found = chains()
    assert "tiny.c" not in {row["path"] for row in found}
    assert [row["commit_hash"] for row in found if row["path"] == "a.c"] == [kept[0], kept[2]]
    assert [row["file_local_commit_index"] for row in found if row["path"] == "a.c"] == [0, 1]
    assert [row["path"] for row in found if row["commit_hash"] == kept[1]] == ["b.c", "c.c", "d.c", "e.c", "f.c"]


def test_merges_are_not_modifications_and_both_sides_are_listed_parents_first(
    repository: Repository, chains: Chains
) -> None:
    repository.commit(a__c=text(0), b__c=text(0))
    repository.git("branch", "side")
    ours = repository.commit("Ours", a__c=text(1))
    repository.git("checkout", "-q", "side")
    theirs = repository.commit("Theirs", b__c=text(2))
    repository.git("checkout", "-q", "main")
    repository.num_commits += 1
    repository.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    last = repository.commit("Last", b__c=text(3))
    found = chains()
    assert [(row["path"], row["commit_hash"]) for row in found] == [("a.c", ours), ("b.c", theirs), ("b.c", last)]
    assert all(len(row["parent_hashes"]) == 1 for row in found)


def test_a_parent_comes_first_even_where_its_clock_was_ahead(repository: Repository, chains: Chains) -> None:
    repository.commit(a__c=text(0))
    repository.num_commits = 500
    early = repository.commit("Ahead", a__c=text(1))
    repository.num_commits = 2
    late = repository.commit("After", a__c=text(2))
    assert [row["commit_hash"] for row in chains()] == [early, late]


def test_side_by_side_branches_are_listed_in_the_order_of_their_times(repository: Repository, chains: Chains) -> None:
    repository.commit(a__c=text(0))
    repository.git("branch", "side")
    expected = []
    for number in range(1, 7):
        repository.git("checkout", "-q", "side" if number % 2 else "main")
        expected.append(repository.commit(f"Change {number}", a__c=text(number)))
    repository.num_commits += 1
    repository.git("merge", "-q", "-s", "ours", "-m", "Merge", "side")
    assert [row["commit_hash"] for row in chains()] == expected


def test_a_path_that_was_renamed_or_made_twice_is_marked(repository: Repository, chains: Chains) -> None:
    repository.commit(old__c=text(0) * 5, again__c=text(9), plain__c=text(0))
    repository.git("mv", "old.c", "new.c")
    repository.git("rm", "-q", "again.c")
    repository.commit("Move")
    repository.commit("Again", again__c=text(8))
    repository.commit("Change", new__c=text(0) * 4 + text(3), again__c=text(7), plain__c=text(1))
    assert {row["path"]: row["has_rename_ambiguity"] for row in chains()} == {
        "again.c": True,
        "new.c": True,
        "plain.c": False,
    }


def test_only_files_that_were_collected_have_chains(repository: Repository, chains: Chains) -> None:
    repository.commit(kept__c=text(0), gone__c=text(0), left__c=text(0), page__py=text(0))
    repository.commit("Change", kept__c=text(1), gone__c=text(1), left__c=text(1), page__py=text(1))
    repository.git("rm", "-q", "gone.c")
    repository.commit("Remove")
    assert [row["path"] for row in chains(exclude=("left.c",))] == ["kept.c"]


def test_stable_ids_follow_the_source_and_the_path_alone(repository: Repository, chains: Chains) -> None:
    repository.commit(a__c=text(0), b__c=text(0))
    first = repository.commit("Change", a__c=text(1), b__c=text(1))
    repository.commit("Again", a__c=text(2))
    every = chains()
    assert len({row["repo_stable_id"] for row in every}) == 1
    assert len({row["filepath_stable_id"] for row in every}) == 2
    ids = ("repo_stable_id", "filepath_stable_id")
    assert [[row[name] for name in ids] for row in chains(first)] == [
        [every[at][name] for name in ids] for at in (0, 2)
    ]
    assert {row["repo_stable_id"] for row in chains(name="other")}.isdisjoint({row["repo_stable_id"] for row in every})


def test_names_and_subjects_of_any_bytes_are_listed(repository: Repository, chains: Chains) -> None:
    name = b'd\xe9 "x"\n.c'.decode("utf-8", "surrogateescape")
    repository.write(name, text(0).encode())
    repository.commit("Begin")
    repository.write(name, text(1).encode())
    repository.git("config", "i18n.commitEncoding", "latin-1")
    repository.commit(b"Ge\xe4ndert".decode("utf-8", "surrogateescape"))
    (row,) = chains()
    assert row["path"] == 'd\\xe9 "x"\\x0a.c'
    assert row["subject"] == "Geändert"


CHANGES = [Change("a.c", "M", "0", "1")]


@pytest.mark.parametrize(
    ("subject", "accepted"),
    [
        ("Fix string formatting of floats", True),
        ("Format strings with the locale", True),
        ("Add version check", True),
        ("Release the lock earlier", True),
        ("Release 2 buffers at exit", True),
        ("Fix whitespace handling in the parser", True),
        ("Increment the counter of readers", True),
        ("Clean up code style in enough.c, update version", True),
        ("Avoid a conversion warning", True),
        ("Update version", False),
        ("Change version numbers to 1.2.5.2 and release dates", False),
        ("Change version number on develop branch to 1.3.0.1.", False),
        ("Bump version to 2.0", False),
        ("bump zlib to 1.3", False),
        ("Version bump", False),
        ("v1.2.3", False),
        ("Release 1.2.3", False),
        ("Prepare release 4.1", False),
        ("Run clang-format on src", False),
        ("Reformat", False),
        ("style: indent", False),
        ("Remove trailing whitespace", False),
        ("Fix white-space", False),
    ],
)
def test_formatting_and_new_versions_are_known_by_their_subject(subject: str, accepted: bool) -> None:
    assert is_accepted(subject, CHANGES) is accepted


def test_a_commit_of_more_than_five_source_files_or_none_is_not_accepted() -> None:
    assert is_accepted("Fix", CHANGES * 5 + [Change("x.py", "M", "0", "1")] * 9)
    assert not is_accepted("Fix", CHANGES * 6)
    assert not is_accepted("Fix", [])
