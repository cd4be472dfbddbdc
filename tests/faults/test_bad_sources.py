"""Refusals of sources by collect: one row for each bad pin, server, repository and folder, collected beside a sound source."""

import hashlib
from collections.abc import Callable

import pytest

from pipeline.core.errors import ArchiveError, DigestError, FetchError, PinError, SluiceError, SourceError
from pipeline.pins.local_tree import tree_digest
from tests.faults.conftest import Make, check_refusal
from tests.support.made.made_bad_archives import SOUND, tar
from tests.support.made.made_bad_inputs import PAGE, BadInputs

OTHER = "1" * 64


def redirected(inputs: BadInputs, target: str) -> str:
    inputs.index.redirects["/moved"] = target.format(address=inputs.index.address)
    return inputs.served("/moved")


def wide_tree(inputs: BadInputs) -> str:
    """Five objects that describe 1 000 000 000 000 files."""
    repository = inputs.repository()
    name = repository.git("hash-object", "-w", "--stdin", stdin=b"int a;\n")
    mode = "100644"
    for _ in range(4):
        name = repository.tree(*((mode, b"%03d.c" % number, name) for number in range(1000)))
        mode = "40000"
    return inputs.git(repository.commit_tree(name))


def deep_tree(inputs: BadInputs) -> str:
    repository = inputs.repository()
    repository.write("d/" * 70 + "a.c", b"int a;\n")
    return inputs.git(repository.commit())


def climbing_tree(inputs: BadInputs, name: bytes) -> str:
    repository = inputs.repository()
    blob = repository.git("hash-object", "-w", "--stdin", stdin=b"int a;\n")
    return inputs.git(repository.commit_tree(repository.tree(("100644", name, blob))))


def names_a(inputs: BadInputs, revision: str) -> str:
    repository = inputs.repository()
    repository.commit(a__c="int a;\n")
    repository.git("tag", "-a", "-m", "Tag", "v1")
    return inputs.git(repository.git("rev-parse", revision))


def absent_commit(inputs: BadInputs) -> str:
    inputs.repository().commit(a__c="int a;\n")
    return inputs.git("b" * 40)


def lost_object(inputs: BadInputs) -> str:
    repository = inputs.repository()
    commit = repository.commit(a__c="int a;\n")
    blob = repository.git("rev-parse", "HEAD:a.c")
    (repository.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    return inputs.git(commit)


def changed_tree(inputs: BadInputs) -> str:
    tree = inputs.folder / "tree"
    tree.mkdir()
    (tree / "a.c").write_bytes(b"int a;\n")
    digest = tree_digest(tree)
    (tree / "a.c").write_bytes(b"int b;\n")
    return f'kind = "local"\npath = "tree"\ndigest = "{digest}"'


def page_of_another_form(inputs: BadInputs) -> str:
    inputs.index.page = b'{"meta": {"api-version": "1.0"}, "name": "demo-pkg", "files": null}'
    return inputs.sdist(b"", OTHER)


def lines(inputs: BadInputs, content: bytes) -> str:
    return inputs.archive(content, "lines.jsonl").replace('"archive"', '"jsonl"')


REFUSED: list[tuple[str, Make, type[SluiceError], str]] = [
    (
        "archive without code",
        lambda b: b.archive(tar({"d/a.py": b"", "d/LICENSE": b"MIT"})),
        SourceError,
        "it holds no source file (1 other_language, 1 read for its license alone, such as LICENSE)",
    ),
    (
        "globs that match nothing",
        lambda b: b.archive(tar(SOUND)) + '\ninclude = ["src/**"]',
        SourceError,
        "it holds no source file (1 excluded)",
    ),
    (
        "lines in UTF-16",
        lambda b: lines(b, '{"path": "a.c", "text": ""}'.encode("utf-16")),
        ArchiveError,
        "is in UTF-16",
    ),
    (
        "lines with other fields",
        lambda b: lines(b, b'{"file": "a.c", "content": ""}\n'),
        SourceError,
        "it holds no source file (1 bad_line; line 1: `path` is missing)",
    ),
    ("wrong digest", lambda b: b.archive(tar(SOUND), sha256=OTHER), DigestError, f"expected {OTHER}"),
    ("absent archive", lambda b: b.archive(b"").replace("bad", "none"), SourceError, "none.tar is not a file"),
    ("changed folder", changed_tree, DigestError, "its tree has the digest"),
    ("index with another file", lambda b: b.sdist(b"other bytes", OTHER), DigestError, "the index offers demo_pkg-1.0"),
    (
        "index without digest and with another file",
        lambda b: b.sdist(b"other bytes", OTHER, link_digest=""),
        DigestError,
        f"expected {OTHER}",
    ),
    (
        "index with a page for a file",
        lambda b: b.sdist(PAGE, hashlib.sha256(PAGE).hexdigest()),
        ArchiveError,
        "it begins with b'<!DOCTYPE html>",
    ),
    (
        "server that stalls",
        lambda b: b.served("/files/x.tar", None, *["stall"] * 9),
        FetchError,
        "stalled (ReadTimeout)",
    ),
    (
        "server that cuts",
        lambda b: b.served("/files/x.tar", None, *["truncate"] * 9),
        FetchError,
        "closed connection without sending complete",
    ),
    ("server that is away", lambda b: b.served("/files/x.tar", None, *["unavailable"] * 9), FetchError, "answered 503"),
    (
        "server without end",
        lambda b: b.served("/files/x.tar", None, "endless"),
        FetchError,
        "sends more than 100000 bytes",
    ),
    ("redirect to nowhere", lambda b: redirected(b, "http://[::1"), FetchError, "redirects to 'http://[::1'"),
    ("index page of another form", page_of_another_form, FetchError, "its page cannot be read (TypeError)"),
    ("redirects in a ring", lambda b: redirected(b, "/moved"), FetchError, "redirects more than 10 times"),
    ("redirect to a file", lambda b: redirected(b, "file:///etc/passwd"), FetchError, "redirects to a `file:` address"),
    ("pins nested without end", lambda b: "x = " + "[" * 50_000, PinError, "nested too deeply"),
    ("pins with an endless number", lambda b: "x = " + "9" * 5_000, PinError, "is not TOML"),
    ("branch for a commit", lambda b: b.git("main"), PinError, "commit is 'main'"),
    ("abbreviated commit", lambda b: b.git("b" * 12), PinError, "full commit id of 40 or 64 lower-case hex digits"),
    ("password in a URL", lambda b: b.git("b" * 40, "https://me:word@host/r"), PinError, "without a password"),
    ("option for a URL", lambda b: b.git("b" * 40, "ssh://-oProxyCommand=x/r"), PinError, "an https, ssh or file URL"),
    ("command for a URL", lambda b: b.git("b" * 40, "ext::sh -c x"), PinError, "an https, ssh or file URL"),
    ("commit that is not there", absent_commit, FetchError, f"does not offer commit {'b' * 40}"),
    ("object that is not there", lost_object, FetchError, "could not be fetched"),
    ("tag for a commit", lambda b: names_a(b, "v1"), SourceError, "is the id of a tag; expected the id of a commit"),
    ("tree for a commit", lambda b: names_a(b, "HEAD^{tree}"), SourceError, "is the id of a tree"),
    (
        "no repository",
        lambda b: b.git("b" * 40, "file:///nowhere"),
        FetchError,
        "does not appear to be a git repository",
    ),
    (
        "git server that stalls",
        lambda b: b.git("b" * 40, f"{b.index.address}/git-that-stalls/r"),
        FetchError,
        "too slow",
    ),
    ("tree that climbs", lambda b: climbing_tree(b, b".."), ArchiveError, "'..': is not a valid file name"),
    ("tree with a path for a name", lambda b: climbing_tree(b, b"../x.c"), ArchiveError, "is not a valid file name"),
    ("tree bomb", wide_tree, ArchiveError, "has more entries than 200000"),
    ("deep tree", deep_tree, ArchiveError, "folders deep; expected at most 64"),
]


@pytest.mark.parametrize(("make", "kind", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_bad_source_is_refused_by_name_and_a_sound_source_beside_it_is_collected(
    make: Make, kind: type[SluiceError], message: str, refusal: Callable[[Make], SluiceError]
) -> None:
    check_refusal(refusal(make), kind, message)


KEPT: list[tuple[str, Make, list[str], dict[str, str]]] = [
    ("a redirect", lambda b: redirected(b, "{address}/files/x.tar"), ["a.c"], {}),
    ("a cut and a passing trouble", lambda b: b.served("/files/x.tar", None, "truncate"), ["a.c"], {}),
]


@pytest.mark.parametrize(("make", "files", "drops"), [row[1:] for row in KEPT], ids=[row[0] for row in KEPT])
def test_odd_source_that_harms_nobody_is_collected(
    make: Make,
    files: list[str],
    drops: dict[str, str],
    collected: Callable[[Make], tuple[list[str], dict[str, str]]],
) -> None:
    assert collected(make) == (sorted(files), drops)
