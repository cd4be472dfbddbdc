"""Objects of a pack: the same from any packing, and a pack that is damaged or of another commit is refused."""

import pytest

from pipeline.core.errors import ArchiveError
from pipeline.stages.collect.params import RetryPolicy
from pipeline.stages.collect.stage import run
from tests.pipeline.stages.collect.collected_commits import failure, pin_of, rows
from tests.pipeline.stages.collect.conftest import Create
from tests.support.git_repository import Repository


def test_odd_names_are_files_and_of_two_that_collide_one_can_be_excluded(
    surroundings: Create, repository: Repository, retry: RetryPolicy
) -> None:
    blob = repository.git("hash-object", "-w", "--stdin", stdin=b"int a;\n")
    names = [b"A.c", b"a.c", b"caf\xe9.c", b"back\\slash.c", b"con.c"]
    tree = repository.tree(*(("100644", name, blob) for name in sorted(names)))
    pin = pin_of(repository, repository.commit_tree(tree))
    refused = run(surroundings(pin), retry).failures["demo"]
    assert "'A.c' and 'a.c' collide; " in str(refused)
    assert "'back\\\\\\\\slash.c' holds a backslash" in str(refused)
    assert "`exclude`" in refused.remedy

    context = surroundings(pin.model_copy(update={"exclude": ("A.c", "back*")}))
    assert run(context, retry).failures == {}
    assert [path for (path,) in rows(context, "files.parquet", "path")] == [
        "a.c",
        "caf\\xe9.c",
        "con.c",
    ]


@pytest.mark.parametrize(
    ("mode", "name", "content", "message"),
    [
        ("120000", b"b.h", b"../../etc/passwd", "is a link to '../../etc/passwd'; expected a target inside"),
        ("120000", b"b.h", b"x" * 4_097, "is a link of 4097 bytes; expected at most 4096"),
        ("100644", b".GIT", b"int a;\n", "'.GIT': is not a valid file name"),
    ],
)
def test_an_entry_that_no_checkout_would_make_is_refused(
    surroundings: Create,
    repository: Repository,
    retry: RetryPolicy,
    mode: str,
    name: bytes,
    content: bytes,
    message: str,
) -> None:
    blob = repository.git("hash-object", "-w", "--stdin", stdin=content)
    tree = repository.tree((mode, name, blob), ("100644", b"c.c", blob))
    pin = pin_of(repository, repository.commit_tree(tree))
    assert message in str(run(surroundings(pin), retry).failures["demo"])


def test_a_tree_out_of_order_is_refused(surroundings: Create, repository: Repository, retry: RetryPolicy) -> None:
    blob = repository.git("hash-object", "-w", "--stdin", stdin=b"int a;\n")
    tree = repository.tree(("100644", b"b.c", blob), ("100644", b"a.c", blob))
    pin = pin_of(repository, repository.commit_tree(tree))
    assert "is invalid at byte" in str(run(surroundings(pin), retry).failures["demo"])


def test_a_repository_that_packs_otherwise_gives_the_same_part(
    surroundings: Create, repository: Repository, retry: RetryPolicy
) -> None:
    for number in range(5):
        commit = repository.commit(a__c=f"int a{number};\n" * 100, b__c="int b;\n")
    tables = []
    for setting in ("0", "9"):
        repository.git("config", "pack.compression", setting)
        repository.git("config", "pack.window", setting)
        repository.git("repack", "-a", "-d", "-F", "-q")
        context = surroundings(pin_of(repository, commit, history=True))
        assert run(context, retry).failures == {}
        tables.append((context.made["demo"].tables, context.names))
    assert tables[0][0] == tables[1][0]
    assert tables[0][1] != tables[1][1]


def test_a_pack_whose_bytes_changed_is_refused(
    surroundings: Create, repository: Repository, retry: RetryPolicy
) -> None:
    commit = repository.commit(a__c="int a;\n" * 1000)
    context = surroundings(pin_of(repository, commit))
    run(context, retry)
    context.known_parts.clear()
    (sha256,) = context.names.values()
    content = bytearray((context.folder / sha256).read_bytes())
    content[len(content) // 2] ^= 1
    (context.folder / sha256).write_bytes(content)
    error = failure(context, retry)
    assert isinstance(error, ArchiveError)
    assert "demo: its pack is broken" in str(error)
    assert "fsck" in str(error)


def test_a_pack_of_another_commit_under_the_right_name_is_refused(
    surroundings: Create, repository: Repository, retry: RetryPolicy
) -> None:
    one = repository.commit(a__c="int a;\n")
    other = repository.commit(a__c="int b;\n")
    context = surroundings(pin_of(repository, one))
    run(context, retry)
    context.names = {f"git/{other}": context.names[f"git/{one}"]}
    context.pins = [pin_of(repository, other)]
    assert f"commit {other} is missing" in str(failure(context, retry))
