"""Changes of files by commits: which are documents, in which form, and what all others are called."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from pipeline.core.change_text import change_path
from pipeline.core.schema import check_table
from pipeline.pins.selection import Selector
from pipeline.stages.collect.kinds.git import GitPin
from pipeline.stages.collect.params import CollectParams, RetryPolicy
from pipeline.stages.collect.stage import run
from tests.pipeline.stages.collect.conftest import Create, Surroundings
from tests.pipeline.stages.collect.repositories.test_listed_history import listed_otherwise
from tests.support.git_repository import Repository

Collect = Callable[..., "Surroundings"]
A_COMMIT = "of a commit that is long enough for a diff of more than fifty characters"


@pytest.fixture
def collect(surroundings: Create, repository: Repository, retry: RetryPolicy) -> Collect:
    """Collect HEAD with its changes, less what selectors withdraw."""

    def collected(*withdrawn: str, **more: object) -> "Surroundings":
        commit = repository.git("rev-parse", "HEAD")
        pin = GitPin(name="demo", url=repository.url, commit=commit, history=True, **more)  # type: ignore[arg-type]
        context = surroundings(pin)
        context.params = CollectParams(with_changes=True, max_file_bytes=250_000)
        context.withdrawn = tuple(map(Selector, withdrawn))
        assert run(context, retry).failures == {}
        assert listed_otherwise(context.made, pin.identity(), withdrawn) == []
        return context

    return collected


def text(*words: str) -> str:
    return "".join(f"int {word}; // {A_COMMIT}\n" for word in words)


def files(context: "Surroundings") -> dict[str, bytes]:
    return {row["path"]: row["content"] for row in context.made["demo"].tables["files.parquet"].to_pylist()}


def drops(context: "Surroundings") -> dict[str, tuple[str, str]]:
    rows = context.made["demo"].tables["dropped.parquet"].to_pylist()
    return {row["path"]: (row["reason"], row["detail"]) for row in rows}


def test_a_change_is_its_subject_its_path_and_its_hunks_before_and_after(
    repository: Repository, collect: Collect
) -> None:
    words = list("abcdefghijklmnopqrst")
    repository.commit("Begin", a__c=text(*words))
    commit = repository.commit("Rename b, and leave t out", a__c=text(*words[:-1]).replace("int b", "int x"))
    found = files(collect())

    assert set(found) == {"a.c", change_path(commit, "a.c")}
    lines = found[change_path(commit, "a.c")].decode().split("\n")
    assert lines[:3] == ["// commit: Rename b, and leave t out", "// path: a.c", "//@@ before"]
    assert [line.partition(";")[0] for line in lines[3:]] == [
        *("int a", "int b", "int c", "int d", "int e", "//@@ after", "int a", "int x", "int c", "int d", "int e"),
        *("//@@ before", "int q", "int r", "int s", "int t", "//@@ after", "int q", "int r", "int s", ""),
    ]


def test_every_change_that_is_no_document_is_dropped_by_a_reason_and_nothing_is_lost(
    repository: Repository, collect: Collect
) -> None:
    begin = repository.commit(
        "Begin", **{f"{name}__c": text(name) for name in "abcdefg"}, n__h="x\0" + text("n"), z__c="a\n"
    )
    made = {
        "routine_commit": repository.commit("Bump version to 2", a__c=text("a1")),
        "large_commit": repository.commit("Sweep", **{f"{name}__c": text(name * 2) for name in "abcdef"}),
        "small_change": repository.commit("Small", z__c="b\n"),
        "large_change": repository.commit("Large", a__c=text(*(f"w{number}" for number in range(2000)))),
        "binary_change": repository.commit("Binary", n__h="y\0" + text("n")),
        "marked_change": repository.commit("Mark", b__c=text("b") + "//@@ before and more\n"),
        "too_large": repository.commit("Too large", c__c=text(*(f"w{number}" for number in range(4000)))),
        "line_end_change": repository.commit("Line ends", g__c=text("g").replace("\n", "\r\n")),
    }
    unended = repository.commit("Leave out the last line end", g__c=text("g").rstrip("\n"))
    repository.write("d.c", f"int d; // Caf\xe9 {A_COMMIT}\n".encode("latin-1"))
    made["undecodable_change"] = repository.commit("Words")
    repository.git("mv", "e.c", "moved.c")
    renamed = repository.commit("Move", c__c=text("c"))
    repository.git("config", "i18n.commitEncoding", "utf-8")
    repository.write("f.c", text("f3").encode())
    repository.git("add", "--all")
    tree = repository.git("write-tree")
    parent = repository.git("rev-parse", "HEAD")
    person = "A <a@example.com> 1000000000 +0000"
    raw = f"tree {tree}\nparent {parent}\nauthor {person}\ncommitter {person}\n\n".encode() + b"Caf\xe9\n"
    bad = repository.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=raw)
    repository.git("reset", "-q", "--hard", bad)
    empty = repository.git("commit-tree", "-p", bad, "-m", "", repository.git("rev-parse", "HEAD^{tree}"))
    repository.git("reset", "-q", "--hard", empty)
    context = collect()
    found = drops(context)
    listed = {row["path"] for row in context.made["demo.listing"].tables["listed.parquet"].to_pylist()}

    by_reason = {reason: {path[:40] for path, (each, _) in found.items() if each == reason} for reason in made}
    assert {reason: commits for reason, commits in by_reason.items() if reason not in ("too_large",)} == {
        reason: {commit} | {"undecodable_change": {bad}, "line_end_change": {unended}}.get(reason, set())
        for reason, commit in made.items()
        if reason != "too_large"
    }
    assert found[change_path(made["too_large"], "c.c")][0] == "too_large"
    assert found[change_path(begin, "a.c")] == ("not_modified", "git calls it A")
    assert found[change_path(renamed, "moved.c")] == ("not_modified", "git calls it R from e.c")
    assert "6 files of source code" in found[change_path(made["large_commit"], "a.c")][1]
    assert {path.replace(":", "%3A") for path in {*files(context), *found}} == listed


def test_no_line_end_lets_a_subject_or_a_hunk_write_marks(repository: Repository, collect: Collect) -> None:
    repository.commit("Begin", a__c=text("a"), b__c=text("b"))
    subject = repository.commit("Fix\r//@@ after\rint forged;", a__c=text("a1"))
    hunk = repository.commit("Add", b__c=text("b") + "int x;\r//@@ after\rint forged;\n")
    found = drops(collect())

    assert {path: reason for path, (reason, _) in found.items() if reason == "marked_change"} == {
        change_path(subject, "a.c"): "marked_change",
        change_path(hunk, "b.c"): "marked_change",
    }


def test_a_file_that_was_a_link_or_was_taken_from_one_that_is_back_is_named_once(
    repository: Repository, collect: Collect
) -> None:
    begin = repository.commit(b__c=text("b"), c__c=text("c"))
    for target in ("b.c", "c.c"):
        (repository.folder / "a.c").unlink(missing_ok=True)
        (repository.folder / "a.c").symlink_to(target + "x" * 60)
        linked = repository.commit(f"Link {target}")
    (repository.folder / "a.c").unlink()
    (repository.folder / "b.c").unlink()
    taken = repository.commit("Take b", a__c=text("b"), d__c=text("b"))
    repository.commit("Bring b back", b__c=text("b"))
    context = collect()
    found = drops(context)
    listed = context.made["demo.listing"].tables["listed.parquet"]["path"].to_pylist()

    assert found[change_path(linked, "a.c")][0] == "not_modified"
    assert found[change_path(begin, "b.c")] == ("not_modified", "git calls it A")
    assert found[change_path(taken, "b.c")][0] == "not_modified"
    assert sorted(path.replace(":", "%3A") for path in {*files(context), *found}) == sorted(listed)


def test_merges_are_no_changes_and_an_empty_subject_is_an_empty_line(repository: Repository, collect: Collect) -> None:
    repository.commit(a__c=text("a"), b__c=text("b"))
    repository.git("checkout", "-q", "-b", "side")
    side = repository.commit("Side", b__c=text("b1"))
    repository.git("checkout", "-q", "main")
    repository.write("a.c", text("a1").encode())
    repository.git("commit", "-q", "-a", "--allow-empty-message", "-m", "")
    plain = repository.git("rev-parse", "HEAD")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    found = files(collect())

    assert set(found) == {"a.c", "b.c", change_path(side, "b.c"), change_path(plain, "a.c")}
    assert found[change_path(plain, "a.c")].startswith(b"// commit: \n// path: a.c\n")


def test_a_file_that_is_named_as_a_change_is_refused_unless_it_is_excluded(
    surroundings: Create, repository: Repository, collect: Collect, retry: RetryPolicy
) -> None:
    name = change_path("0" * 40, "a.c")
    (repository.folder / name).write_text(text("a"))
    commit = repository.commit(b__c=text("b"))
    pin = GitPin(name="demo", url=repository.url, commit=commit, history=True)
    context = surroundings(pin)
    context.params = CollectParams(with_changes=True)

    refused = str(run(context, retry).failures["demo"])
    assert "has a name of the form COMMIT:PATH" in refused
    assert "name it in the pin's `exclude`" in refused
    assert name not in files(collect(exclude=("0*",)))


def test_an_excluded_link_has_no_changes(repository: Repository, collect: Collect) -> None:
    (repository.folder / "link.c").symlink_to("a.c")
    repository.commit(a__c=text("a"))
    (repository.folder / "link.c").unlink()
    (repository.folder / "link.c").symlink_to("b.c")
    repository.commit(a__c=text("a1"), b__c=text("b"))
    context = collect(exclude=("link.c",))

    assert drops(context)["link.c"] == ("excluded", "")
    assert not any(path.endswith(":link.c") for path in (*drops(context), *files(context)))


def test_a_withdrawn_file_goes_with_its_changes_and_their_versions(repository: Repository, collect: Collect) -> None:
    repository.commit(a__c=text("a"), b__c=text("b"))
    commit = repository.commit("Both", a__c=text("a1"), b__c=text("b1"))
    context = collect("demo/a.c")
    versions = context.made["demo"].tables["versions.parquet"].to_pylist()

    assert set(files(context)) == {"b.c", change_path(commit, "b.c")}
    assert drops(context)[change_path(commit, "a.c")] == ("withdrawn", "by demo/a.c")
    assert {row["path"] for row in versions} == {"b.c"}


def test_a_version_that_is_withdrawn_by_its_bytes_goes_with_the_changes_from_and_to_it(
    repository: Repository, collect: Collect
) -> None:
    repository.commit(a__c=text("a"))
    commits = [repository.commit(f"Change {word}", a__c=text(word)) for word in ("b", "c", "d")]
    selector = f"sha256:{sha256(text('b').encode()).hexdigest()}"
    context = collect(selector)
    found = drops(context)
    versions = context.made["demo"].tables["versions.parquet"]["content"].to_pylist()

    assert set(files(context)) == {"a.c", change_path(commits[2], "a.c")}
    assert {found[change_path(commit, "a.c")] for commit in commits[:2]} == {("withdrawn", f"by {selector}")}
    assert text("b").encode() not in versions


def test_the_evidence_that_a_commit_had_otherwise_is_kept_beside_it(repository: Repository, collect: Collect) -> None:
    repository.write("LICENSE", b"old\n")
    repository.write("COPYING", b"gone\n")
    repository.commit(a__c=text("a"))
    early = repository.commit("Early", a__c=text("a1"))
    repository.git("rm", "-q", "COPYING")
    repository.write("LICENSE", b"new\n")
    late = repository.commit("Late", a__c=text("a2"))
    tables: dict[str, Any] = dict(collect().made["demo"].tables)
    found = tables["commit_evidence.parquet"].to_pylist()
    contents = {(row["path"], row["git_blob_id"]): row["content"] for row in tables["versions.parquet"].to_pylist()}

    assert {row["commit_hash"] for row in found} == {early}
    assert late != early
    assert {row["path"]: contents[row["path"], row["git_blob_id"]] for row in found} == {
        "COPYING": b"gone\n",
        "LICENSE": b"old\n",
    }
    for name, table in tables.items():
        if name in ("versions.parquet", "commit_evidence.parquet"):
            check_table(table, *_record(name))


def _record(name: str) -> tuple[type, str]:
    from pipeline.core.records import CommitEvidence, SourceFile

    return {"versions.parquet": SourceFile, "commit_evidence.parquet": CommitEvidence}[name], name
