"""A listed history says of each change what git says, and the reasons for which it may be no document."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.oracles.audited_history import misrecorded_history
from pipeline.pins.selection import is_license_evidence
from pipeline.stages.collect.repositories.listed_history import CommitChange, list_changes, list_license_files
from tests.support.git_repository import Repository

LINE = "int {}; // of a line that is long enough for a diff of more than fifty characters\n"


def listed_otherwise(made: Mapping[str, Any], pin: Mapping[str, Any], withdrawn: tuple[str, ...]) -> list[str]:
    """Return the paths of which a collected source and its listing say different things."""

    def opened(name: str) -> Any:
        def table(file: str, columns: list[str] | None = None) -> pa.Table:
            found = made[name].tables[file]
            return found if columns is None else found.select(columns)

        return SimpleNamespace(table=table, identity={"changes": True})

    request = {"pins": {"demo": pin}, "withdrawn": withdrawn, "limits": {"max_file_bytes": 250_000}}
    return [path for _, path in misrecorded_history("demo", opened("demo"), opened("demo.listing"), request)]


def changes(repository: Repository) -> dict[tuple[str, str], CommitChange]:
    head = repository.git("rev-parse", "HEAD")
    found = list_changes(repository.folder / ".git", head, [b".c", b".h"])
    return {(each.commit, each.name.decode()): each for each in found}


def test_a_rename_may_make_a_commit_large_and_a_deletion_with_it_may_not_be_one(repository: Repository) -> None:
    repository.commit("Begin", **{f"{name}__c": LINE.format(name) for name in "abcdef"})
    repository.git("mv", "f.c", "g.c")
    moved = repository.commit("Move", **{f"{name}__c": LINE.format(name * 2) for name in "abcd"})
    sweep = repository.commit("Sweep", **{f"{name}__c": LINE.format(name * 3) for name in "abcdeg"})
    found = changes(repository)

    assert found[moved, "a.c"].reasons == ("large_commit",)
    assert found[moved, "a.c"].num_diff_chars > 0
    assert found[sweep, "a.c"].reasons == ("large_commit",)
    assert found[sweep, "a.c"].num_diff_chars == 0
    assert found[moved, "f.c"].reasons == ("not_modified",)


@pytest.mark.parametrize(
    ("subject", "reasons"),
    [
        ("Add a flag", ()),
        ("Reformat the code", ("routine_commit",)),
        ("1.2.3", ("routine_commit",)),
        ("Add a version of the parser", ("routine_commit",)),
        ("Fix\rit", ("marked_change",)),
    ],
)
def test_a_subject_may_say_that_a_commit_is_routine(
    repository: Repository, subject: str, reasons: tuple[str, ...]
) -> None:
    repository.commit("Begin", a__c=LINE.format("a"))
    commit = repository.commit(subject, a__c=LINE.format("b"))

    assert changes(repository)[commit, "a.c"].reasons == reasons


def test_characters_of_hunks_are_those_of_gits_own_lines(repository: Repository) -> None:
    lines = [LINE.format(number) for number in range(40)]
    repository.write("a.c", "".join(lines).encode() + b"last")
    repository.commit("Begin")
    commit = repository.commit("Two hunks", a__c="".join(["@@ -1 +1 @@\n", *lines[1:-1], "--- a/é\n"]))
    patch = repository.git("diff-tree", "-p", "-U3", commit).split("@@ ", 1)[1]

    assert changes(repository)[commit, "a.c"].num_diff_chars == len("@@ " + patch + "\n")


def test_every_file_that_is_evidence_about_licenses_is_listed_where_a_commit_has_it_otherwise(
    repository: Repository,
) -> None:
    stems = ("license", "LICENCE", "copying", "UNLICENSE", "notice", "EULA", "readme", "README", "Readme")
    names = [f"{stem}{suffix}" for stem in stems for suffix in ("", ".txt", ".md", ".rst", ".commercial", ".eula")]
    names += [
        "license-mit.md",
        "COPYING_LESSER.txt",
        "PKG-INFO",
        "REUSE.toml",
        "a.c.license",
        "of.LICENSE",
        "LICENSES/of",
    ]
    paths = [f"{number}/{name}" for number, name in enumerate(names)] + ["README", "LICENSE", ".reuse/dep5"]
    for path in paths:
        repository.write(path, b"early\n")
    early = repository.commit("Early", a__c="int a;\n")
    repository.git("rm", "-q", *paths)
    head = repository.commit("Late", b__c="int b;\n")
    found = {each.name.decode() for each in list_license_files(repository.folder / ".git", head, [early, head])}

    assert {path for path in paths if is_license_evidence(path)} - found == set()
    assert len(found) > 40


def test_files_about_licenses_are_those_of_the_commit(repository: Repository) -> None:
    repository.write("COPYING", b"old\n")
    early = repository.commit("Early", a__c="int a;\n")
    repository.git("rm", "-q", "COPYING")
    repository.write("LICENSES/MIT.txt", b"new\n")
    head = repository.commit("Late", b__c="int b;\n")
    found = list_license_files(repository.folder / ".git", head, [early, head])

    assert [(each.commit, each.name, each.num_bytes) for each in found] == [
        (early, b"COPYING", 4),
        (early, b"LICENSES/MIT.txt", None),
    ]
