"""Refusals of collect: one row for each bad input, from the pin to the error, collected together with a sound source."""

import gzip
import hashlib
import lzma
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.core.errors import ArchiveError, DigestError, FetchError, PinError, SluiceError, SourceError
from pipeline.pins.local_tree import tree_digest
from pipeline.pins.pins import load_pins
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.params import RetryPolicy
from pipeline.stages.collect.stage import run
from tests.support import git_repository as made
from tests.support.git_repository import Repository
from tests.support.made.made_bad_archives import (
    SOUND,
    commented,
    declare_window,
    entry,
    flipped,
    listed_zip,
    lying_zip,
    renumbered,
    sparse,
    tar,
    two_readings_of_a_zip,
    with_window,
    zip_end,
    zipped,
)

if TYPE_CHECKING:
    from tests.pipeline.stages.collect.conftest import Index, Surroundings

Create = Callable[..., "Surroundings"]
OTHER = "1" * 64


@dataclass
class BadInputs:
    """A folder and a server in which bad input is made."""

    folder: Path
    index: "Index"

    def archive(self, content: bytes, name: str = "bad.tar", sha256: str = "") -> str:
        """The pin of an archive at a path."""
        (self.folder / name).write_bytes(content)
        sha256 = sha256 or hashlib.sha256(content).hexdigest()
        return f'kind = "archive"\npath = "{name}"\nsha256 = "{sha256}"'

    def served(self, path: str, content: bytes | None = None, *faults: str) -> str:
        """The pin of an archive at a URL of the server."""
        content = tar(SOUND) if content is None else content
        sha256 = self.index.add("x.tar", content)
        self.index.faults = list(faults)
        return f'kind = "archive"\nurl = "{self.index.address}{path}"\nsha256 = "{sha256}"'

    def sdist(self, content: bytes, sha256: str, link_digest: str | None = None) -> str:
        """The pin of an sdist in the index."""
        self.index.add("demo_pkg-1.0.tar.gz", content, link_digest)
        lines = ['kind = "sdist"', 'project = "demo-pkg"', 'version = "1.0"', 'file_name = "demo_pkg-1.0.tar.gz"']
        return "\n".join([*lines, f'sha256 = "{sha256}"'])

    def repository(self) -> Repository:
        return made.create(self.folder / "repository")

    def git(self, commit: str, url: str = "", **more: str) -> str:
        """The pin of a commit."""
        url = url or (self.folder / "repository").as_uri()
        return "\n".join(
            ['kind = "git"', f'url = "{url}"', f'commit = "{commit}"', *(f"{k} = {v}" for k, v in more.items())]
        )


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


PAGE = b"<!DOCTYPE html><title>Not found</title>" + b" " * 600
LINK, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE


def lines(inputs: BadInputs, content: bytes) -> str:
    return inputs.archive(content, "lines.jsonl").replace('"archive"', '"jsonl"')


REFUSED: list[tuple[str, Callable[[BadInputs], str], type[SluiceError], str]] = [
    ("zip slip", lambda b: b.archive(zipped({"d/../../x.c": b""})), ArchiveError, "leaves the archive through `..`"),
    ("tar slip", lambda b: b.archive(tar({"d/../../x.c": b""})), ArchiveError, "leaves the archive through `..`"),
    ("absolute path", lambda b: b.archive(tar({"/etc/x.c": b""})), ArchiveError, "'/etc/x.c': has an absolute path"),
    ("Windows drive", lambda b: b.archive(tar({"C:\\x.c": b""})), ArchiveError, "has an absolute path"),
    ("Windows share", lambda b: b.archive(zipped({"\\\\h\\x.c": b""})), ArchiveError, "has an absolute path"),
    ("Windows climb", lambda b: b.archive(tar({"d\\..\\..\\x.c": b""})), ArchiveError, "leaves the archive"),
    ("NUL in a name", lambda b: b.archive(zipped({"a.c_.h": b""}).replace(b"c_", b"c\0")), ArchiveError, "NUL"),
    ("link out", lambda b: b.archive(tar({}, entry("d/l.h", LINK, "../../x"))), ArchiveError, "is a link to '../../x'"),
    (
        "link to /",
        lambda b: b.archive(tar({}, entry("d/l.h", LINK, "/etc/passwd"))),
        ArchiveError,
        "is a link to '/etc",
    ),
    ("hard link out", lambda b: b.archive(tar({}, entry("d/l.h", HARD, "../x"))), ArchiveError, "is a hard link to"),
    (
        "file through a link",
        lambda b: b.archive(tar({}, entry("d/l", LINK, "."), entry("d/l/x.c", tarfile.REGTYPE))),
        ArchiveError,
        "'d/l/x.c' is below 'd/l', which is not a folder",
    ),
    ("device", lambda b: b.archive(tar({}, entry("d/x.c", tarfile.CHRTYPE))), ArchiveError, "is a device"),
    ("FIFO", lambda b: b.archive(tar({}, entry("d/x.c", tarfile.FIFOTYPE))), ArchiveError, "is a FIFO"),
    ("sparse bomb", lambda b: b.archive(sparse()), ArchiveError, "'d/x.c': declares 8589934592 bytes"),
    (
        "ratio bomb",
        lambda b: b.archive(gzip.compress(tar({"d/x.c": b"\0" * 20_000_000}))),
        ArchiveError,
        "at most 200 bytes for each packed byte",
    ),
    (
        "zip of overlapping members",
        lambda b: b.archive(listed_zip([b"%04d.c" % number for number in range(5000)], b"\0" * 1_000_000)),
        ArchiveError,
        "5000000000 bytes are declared in",
    ),
    (
        "a million tiny members",
        lambda b: b.archive(listed_zip([b"%06d.c" % number for number in range(1_000_000)], b"")),
        ArchiveError,
        "has more members than 200000",
    ),
    ("colliding case", lambda b: b.archive(tar({"A.c": b"", "a.c": b""})), ArchiveError, "'A.c' and 'a.c' collide"),
    (
        "colliding accents",
        lambda b: b.archive(tar({"\u00e9.c": b"", "e\u0301.c": b""})),
        ArchiveError,
        "collide; expected paths that differ in more than case",
    ),
    ("endless path", lambda b: b.archive(tar({"d/" * 900 + "x.c": b""})), ArchiveError, "its path has 1803 bytes"),
    ("deep path", lambda b: b.archive(tar({"d/" * 65 + "x.c": b""})), ArchiveError, "is 65 folders deep"),
    ("truncated tar", lambda b: b.archive(tar(SOUND)[:600]), ArchiveError, "is broken"),
    ("truncated gzip", lambda b: b.archive(gzip.compress(tar(SOUND))[:-20]), ArchiveError, "is broken"),
    ("truncated zip", lambda b: b.archive(zipped(SOUND)[:-30]), ArchiveError, "is broken"),
    ("tail after tar", lambda b: b.archive(tar(SOUND) + b"more"), ArchiveError, "follows the end of the tar archive"),
    ("tail after gzip", lambda b: b.archive(gzip.compress(tar(SOUND)) + b"more"), ArchiveError, "is broken"),
    ("tail after xz", lambda b: b.archive(lzma.compress(tar(SOUND)) + b"more"), ArchiveError, "is broken"),
    (
        "tail after zip",
        lambda b: b.archive(zipped(SOUND) + b"more"),
        ArchiveError,
        "follows the end of the zip archive",
    ),
    (
        "two ends of a zip",
        lambda b: b.archive(commented(zipped(SOUND), b"PK\x05\x06" + b"x" * 18)),
        ArchiveError,
        "is broken",
    ),
    (
        "zip that declares more than it holds",
        lambda b: b.archive(lying_zip()),
        ArchiveError,
        "'d/a.c' has another header",
    ),
    (
        "zip whose member has another method in its header",
        lambda b: b.archive(zipped(SOUND).replace(b"\x08", b"\0", 1)),
        ArchiveError,
        "has another header than the directory says",
    ),
    (
        "xz with three zeros after it",
        lambda b: b.archive(lzma.compress(tar(SOUND)) + bytes(3)),
        ArchiveError,
        "3 zeros follow a compressed stream",
    ),
    (
        "xz with a stream far after its padding",
        lambda b: b.archive(lzma.compress(tar(SOUND)) + bytes(40_000) + lzma.compress(tar(SOUND))),
        ArchiveError,
        "data follows the end of the tar archive",
    ),
    (
        "tar with a pax record that is no number",
        lambda b: b.archive(tar({}, entry("d/a.c", b"0", pax_headers={"uid": "x"}), form=tarfile.PAX_FORMAT)),
        ArchiveError,
        "a pax record is no number",
    ),
    (
        "gzip with reserved flags",
        lambda b: b.archive(b"\x1f\x8b\x08\xe0" + gzip.compress(tar(SOUND))[4:]),
        ArchiveError,
        "reserved flags",
    ),
    (
        "zip folder with content",
        lambda b: b.archive(zipped({"d/": b"x", **SOUND})),
        ArchiveError,
        "folder with content",
    ),
    (
        "zip whose directory is outside of it",
        lambda b: b.archive(zip_end(zipped(SOUND), 16, "<I", 2**31)),
        ArchiveError,
        "is broken",
    ),
    (
        "zip whose directory is before it",
        lambda b: b.archive(zip_end(zipped(SOUND), 12, "<I", 2**31)),
        ArchiveError,
        "",
    ),
    (
        "zip of several disks",
        lambda b: b.archive(zip_end(zipped(SOUND), 4, "<H", 1)),
        ArchiveError,
        "disk 1 of a split archive",
    ),
    (
        "zip that counts other members",
        lambda b: b.archive(zip_end(zipped(SOUND), 10, "<H", 7)),
        ArchiveError,
        "it declares 1 of 7 members, and lists 1",
    ),
    (
        "zip after other bytes",
        lambda b: b.archive(b"PK\x03\x04" + zipped(SOUND)),
        ArchiveError,
        "its directory is said",
    ),
    (
        "zip with a hidden member",
        lambda b: b.archive(two_readings_of_a_zip()),
        ArchiveError,
        "is at byte 49; expected 0",
    ),
    (
        "tar member without a name",
        lambda b: b.archive(tar({}, entry("./", tarfile.REGTYPE)) + tar(SOUND)),
        ArchiveError,
        "'./': is a file with the name of a folder",
    ),
    (
        "hard link to nothing",
        lambda b: b.archive(tar(SOUND, entry("d/l.c", HARD, "d/none.c"))),
        ArchiveError,
        "'d/l.c': is a hard link to 'd/none.c'; expected a member before it",
    ),
    (
        "link with content",
        lambda b: b.archive(tar({}, entry("d/l.c", LINK, "a.c", size=1024)) + tar(SOUND)),
        ArchiveError,
        "is a link and declares 1024 bytes",
    ),
    (
        "size with an underscore",
        lambda b: b.archive(renumbered(tar(SOUND), b"0000000_0007")),
        ArchiveError,
        "which is not octal",
    ),
    (
        "xz that wants four gigabytes",
        lambda b: b.archive(declare_window(with_window(tar(SOUND), 1 << 20))),
        ArchiveError,
        "emory usage limit",
    ),
    (
        "archive without code",
        lambda b: b.archive(tar({"d/a.py": b"", "d/LICENSE": b"MIT"})),
        SourceError,
        "it holds no source file (1 other_language)",
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
        "it holds no source file (1 bad_line; line 1: line 1: `path` is missing)",
    ),
    ("member twice", lambda b: b.archive(tar(SOUND)[:1024] + tar(SOUND)), ArchiveError, "collide"),
    ("flipped bit", lambda b: b.archive(flipped(gzip.compress(tar(SOUND)), -5)), ArchiveError, "is broken"),
    ("page as archive", lambda b: b.archive(PAGE, "x.tar.gz"), ArchiveError, "it begins with b'<!DOCTYPE html>"),
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
def test_bad_input_is_refused_by_name_and_a_sound_source_beside_it_is_collected(
    make: Callable[[BadInputs], str],
    kind: type[SluiceError],
    message: str,
    surroundings: Create,
    index: "Index",
    retry: RetryPolicy,
    tmp_path: Path,
) -> None:
    inputs = BadInputs(tmp_path, index)
    entries = {"bad": make(inputs), "sound": inputs.archive(tar(SOUND), "sound.tar")}
    pins = tmp_path / "pins.toml"
    pins.write_text("\n".join(f'[[pin]]\nname = "{name}"\n{entry}\n' for name, entry in entries.items()))
    if kind is PinError:
        with pytest.raises(PinError) as caught:
            load_pins(pins, SOURCE_KINDS)
        error: SluiceError = caught.value
    else:
        context = surroundings(*load_pins(pins, SOURCE_KINDS))
        output = run(context, replace(retry, num_attempts=2, max_num_bytes=100_000))
        assert set(output.parts) == {"sound"}
        error = output.failures["bad"]
    assert type(error) is kind
    assert message in str(error)
    assert error.remedy


KEPT: list[tuple[str, Callable[[BadInputs], str], list[str], dict[str, str]]] = [
    (
        "links in a ring",
        lambda b: b.archive(tar(SOUND, entry("d/l.h", LINK, "m.h"), entry("d/m.h", LINK, "l.h"))),
        ["a.c"],
        {"l.h": "link", "m.h": "link"},
    ),
    (
        "a link to itself and one to the top",
        lambda b: b.archive(tar(SOUND, entry("d/l.h", LINK, "l.h"), entry("d/m", LINK, "."))),
        ["a.c"],
        {"l.h": "link", "m": "link"},
    ),
    (
        "names that are not UTF-8",
        lambda b: b.archive(tar({b"d/\xe9\xff.c".decode("utf-8", "surrogateescape"): b"", "d/b.c": b""})),
        ["\\xe9\\xff.c", "b.c"],
        {},
    ),
    (
        "a name that looks like an escape",
        lambda b: b.archive(tar({b"d/\xe9.c".decode("utf-8", "surrogateescape"): b"", "d/\\xe9.c": b""})),
        ["\\\\xe9.c", "\\xe9.c"],
        {},
    ),
    ("names of devices", lambda b: b.archive(tar({"d/con.c": b"", "d/aux.h": b""})), ["aux.h", "con.c"], {}),
    (
        "names that drive a terminal",
        lambda b: b.archive(tar({"d/\x1b[31m.c": b"", "d/a\nb.h": b"", "d/\u202eh.c": b""})),
        ["\\x1b[31m.c", "a\\x0ab.h", "\\xe2\\x80\\xaeh.c"],
        {},
    ),
    (
        "gzip in two members",
        lambda b: b.archive(gzip.compress(tar(SOUND)[:700]) + gzip.compress(tar(SOUND)[700:])),
        ["a.c"],
        {},
    ),
    ("a comment in a zip", lambda b: b.archive(commented(zipped(SOUND))), ["a.c"], {}),
    ("a redirect", lambda b: redirected(b, "{address}/files/x.tar"), ["a.c"], {}),
    ("a cut and a passing trouble", lambda b: b.served("/files/x.tar", None, "truncate"), ["a.c"], {}),
]


@pytest.mark.parametrize(("make", "files", "drops"), [row[1:] for row in KEPT], ids=[row[0] for row in KEPT])
def test_odd_input_that_harms_nobody_is_collected(
    make: Callable[[BadInputs], str],
    files: list[str],
    drops: dict[str, str],
    surroundings: Create,
    index: "Index",
    retry: RetryPolicy,
    tmp_path: Path,
) -> None:
    pins = tmp_path / "pins.toml"
    pins.write_text(f'[[pin]]\nname = "odd"\n{make(BadInputs(tmp_path, index))}\n')
    context = surroundings(*load_pins(pins, SOURCE_KINDS))
    assert run(context, retry).failures == {}
    tables = context.made["odd"].tables
    assert sorted(tables["files.parquet"]["path"].to_pylist()) == sorted(files)
    assert {row["path"]: row["reason"] for row in tables["dropped.parquet"].to_pylist()} == drops
