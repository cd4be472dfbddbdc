"""The source kind `git`: a commit of a repository, fetched as one pack of objects; nothing is checked out or executed."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.contracts.part import PartJob
from pipeline.core.change_text import CHANGES
from pipeline.core.digests import file_sha256
from pipeline.core.errors import ArchiveError, FetchError, PinError, SourceError
from pipeline.pins.pins import PlainPath, SourcePin
from pipeline.stages.collect.contents import ReadOptions, SourceContents
from pipeline.stages.collect.kinds.source_kind import Fetcher, Origin, SourceKind, file_blocks
from pipeline.stages.collect.listing import ListedName, list_commit
from pipeline.stages.collect.params import RetryPolicy
from pipeline.stages.collect.repositories.bundle_heads import bundle_heads, listed_heads, only_head
from pipeline.stages.collect.repositories.command import create_repository, run_git, run_online

Commit = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
GitUrl = Annotated[
    str,
    Field(pattern=r"^(https?://[^/\s@]+/\S+|ssh://([A-Za-z0-9._]+@)?[A-Za-z0-9\[][^/\s@]*/\S+|file:///\S+)$"),
]
_SSH = "ssh -o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=15 -o ServerAliveCountMax=2"
_MAX_ANSWER = 1 << 16
"""Bytes of what a repository says of its refs."""
_NO_REF = 2
"""Exit status of `git ls-remote --exit-code` where no ref is of that name."""
_CHECK_URL = "Check the pin's `url`, the network and your access, then run again."
_BUNDLE_AGAIN = "Make the bundle again, of a whole branch: `git bundle create FILE BRANCH`."
_MAX_LISTED = 8
"""Refs that a message names."""
_NOT_FOUND = ("not our ref", "no such remote ref", "couldn't find remote ref", "bad object", "unadvertised object")
_PERMANENT_FAILURES = (
    "not found",
    "does not exist",
    "does not appear to be a git repository",
    "mismatched algorithms",
    "dubious ownership",
    "Permission denied",
    "Authentication failed",
    "could not read Username",
    "not allowed",
    "dumb http transport",
)


class GitPin(SourcePin):
    """A commit of a git repository at an `https`, `ssh` or `file` URL, or of a bundle at a path, relative to the pins file."""

    kind: Literal["git"] = "git"
    url: GitUrl | None = None
    path: PlainPath | None = None
    """A file of `git bundle`, of which the commit is a head."""
    commit: Commit
    history: bool = Field(default=False, strict=True)
    """Fetch the commit's ancestors too, and keep the modifications of its files."""

    locator_fields: ClassVar[frozenset[str]] = frozenset({"url", "path"})
    revision_field: ClassVar[str] = "commit"

    @model_validator(mode="after")
    def _has_one_locator(self) -> "GitPin":
        if (self.url is None) == (self.path is None):
            raise ValueError("either `url` or `path`, and not both")
        return self

    @property
    def place(self) -> str:
        """The URL, or the path of the bundle."""
        return self.url or str(self.path)

    @classmethod
    def hint(cls, field: str, entry: Mapping[str, Any]) -> tuple[str, str]:
        """Return the command that prints full ids if the pin's commit is missing or malformed."""
        if field != "commit":
            return super().hint(field, entry)
        expected = "a full commit id of 40 or 64 lower-case hex digits, because branches, tags and abbreviations move"
        return expected, f"Run `git ls-remote {entry.get('url', 'URL')}` and paste the full id of the commit."


def bundle_commands(name: str, repository: Path) -> str:
    """Return what to run, so that a pin names the commit that a repository on this machine is at."""
    make = f"git -C {shlex.quote(str(repository))} bundle create $PWD/{name}.bundle HEAD"
    return f"Run `{make}`, then `python -m pipeline pin {name} {name}.bundle`."


def _fetch(pin: GitPin, fetcher: Fetcher) -> Path:
    # The bytes of a pack depend on who packed it, so it is found by the commit's id; its reader verifies it by that id.
    context = fetcher.context
    with_history = f"git/{pin.commit}.history"
    name = with_history if pin.history else f"git/{pin.commit}"
    stored = context.named_blob(name) or context.named_blob(with_history)
    if stored is not None:
        return stored
    if pin.path is None:
        fetcher.require_online(pin, f"commit {pin.commit}{' with its history' if pin.history else ''}")
    elif not pin.path.is_file():
        raise _no_bundle(pin.name, pin.path)
    blobs = context.partial_blob(pin.commit).parent
    blobs.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=blobs, prefix="git-") as folder:
        pack = fetch_commit(pin, Path(folder), context.params.max_total_bytes, fetcher.retry)
        sha256 = file_sha256(pack)
        stored = context.put_blob(file_blocks(pack), sha256, pin.name)
    context.name_blob(name, sha256)
    return stored


def _read(job: PartJob, pack: Path, options: ReadOptions) -> SourceContents:
    from pipeline.stages.collect.repositories.changes import read_changes
    from pipeline.stages.collect.repositories.history import modifications, read_history
    from pipeline.stages.collect.repositories.pack_objects import commit_contents, open_pack

    commit: str = job.identity["revision"]
    with open_pack(pack, commit, job.name) as objects:
        contents = commit_contents(objects, commit, options)
        if not job.identity["history"]:
            return contents
        paths = [file.path for file in contents.files]
        history = read_history(objects, commit)
        with_history = replace(contents, history=tuple(modifications(history, commit, paths, job.name)))
        if not job.identity.get(CHANGES):
            return with_history
        return replace(with_history, changes=read_changes(objects, commit, history, contents, options))


def _listing(pin: Mapping[str, Any], pack: Path, num_bytes: int) -> Iterator[ListedName]:
    suffixes = {suffix for each in pin["languages"].values() for suffix in each} if pin["history"] else set()
    return list_commit(pack, pin["revision"], suffixes, bool(pin.get(CHANGES)))


def fetch_commit(pin: GitPin, folder: Path, max_num_bytes: int, retry: RetryPolicy) -> Path:
    """Fetch the commit, with all its ancestors if the pin has `history`, into `folder`; return the pack there.

    Only the commit's own objects are requested, and nothing is checked out. Raises FetchError after the last attempt,
    SourceError if the id is that of another object.
    """
    failures: list[str] = []
    for attempt in retry.attempts() if pin.path is None else (1,):
        repository = folder / f"attempt-{attempt}"
        create_repository(repository, pin.commit)
        failure = _attempt(pin, repository, max_num_bytes, retry)
        if failure is None:
            _require_commit(pin, repository)
            return _only_pack(pin, repository)
        failures.append(failure)
        if any(text in failure for text in _PERMANENT_FAILURES):
            break
    tried = "; ".join(f"attempt {number}: {failure}" for number, failure in enumerate(failures, start=1))
    remedy = _CHECK_URL if pin.path is None else _BUNDLE_AGAIN
    raise FetchError(pin.name, f"{pin.place} could not be fetched ({tried})", f"commit {pin.commit}", remedy)


def _attempt(pin: GitPin, repository: Path, max_num_bytes: int, retry: RetryPolicy) -> str | None:
    """Return git's message if it failed. Raises at once what no retry would help: a missing commit, a pack too large."""
    options = _options(retry)
    fetch = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-gc"]
    depth = [] if pin.history else ["--depth=1"]
    arguments = [*options, *fetch, *depth, pin.place, pin.commit]
    status, message = run_online(repository, arguments, max_num_bytes, retry.deadline_seconds)
    if status == 0:
        return None
    if status == -9:
        return f"it did not finish within {retry.deadline_seconds:.0f} s"
    if any(text in message for text in _NOT_FOUND):
        if pin.path is not None and pin.commit in _heads(pin.name, pin.path).values():
            found = f"{pin.place} is damaged: it lists commit {pin.commit}, and git cannot read that in it ({message})"
            raise FetchError(pin.name, found, "a whole bundle", _BUNDLE_AGAIN)
        remedy = f"Run `git ls-remote {pin.place}` and pin a commit that it lists, or the repository that has this one."
        found = f"{pin.place} does not offer commit {pin.commit} ({message})"
        raise FetchError(pin.name, found, "a commit of that repository", remedy)
    if any(path.stat().st_size >= max_num_bytes for path in repository.glob("objects/pack/tmp_*")):
        remedy = "Leave out `history`, or raise the limit if you trust it."
        raise ArchiveError(pin.name, f"{pin.place} sends too much", f"a pack of at most {max_num_bytes} bytes", remedy)
    return message


def _options(retry: RetryPolicy) -> list[str]:
    """Return the settings of git for a transfer."""
    stall = max(1, round(retry.stall_timeout_seconds))
    settings = ("fetch.unpackLimit=1", "transfer.bundleURI=false", f"core.sshCommand={_SSH}", "http.lowSpeedLimit=1")
    return [argument for setting in (*settings, f"http.lowSpeedTime={stall}") for argument in ("-c", setting)]


def _newest(pin: GitPin, fetcher: Fetcher) -> dict[str, str]:
    """Return the commit that `HEAD` of the repository or the bundle names now, else its only branch. Raises SourceError."""
    heads = _heads(pin.name, pin.path) if pin.path is not None else _asked_heads(pin, fetcher)
    newest = only_head(heads)
    if newest is None and pin.commit not in heads.values():
        remedy = f"Review one of them and pin its commit: {_listed(heads)}"
        raise FetchError(pin.name, f"{pin.place} has no HEAD, and no ref names what is pinned", "one branch", remedy)
    return {} if newest in (None, pin.commit) else {"commit": str(newest)}


def _asked_heads(pin: GitPin, fetcher: Fetcher) -> dict[str, str]:
    """Return what `HEAD` of a repository at a URL names, by ref, or its branches where it names none. Raises FetchError."""
    status, message = 0, ""
    for refs in ("HEAD", "refs/heads/*"):
        with TemporaryDirectory(prefix="git-") as folder, TemporaryFile() as output:
            create_repository(Path(folder) / "asked", pin.commit)
            arguments = [*_options(fetcher.retry), "ls-remote", "--exit-code", pin.place, refs]
            deadline = fetcher.retry.deadline_seconds
            status, message = run_online(Path(folder) / "asked", arguments, _MAX_ANSWER, deadline, output)
            output.seek(0)
            if status == 0 and (heads := listed_heads(output.read().replace(b"\t", b" "))):
                return heads
        if status != _NO_REF:
            break
    why = "it has no branch" if status == _NO_REF else message
    raise FetchError(pin.name, f"{pin.place} does not say what HEAD is ({why})", "a commit", _CHECK_URL)


def _heads(name: str, path: Path) -> dict[str, str]:
    heads = bundle_heads(path) if path.is_file() else None
    if heads is None:
        raise _no_bundle(name, path)
    return heads


def _no_bundle(name: str, path: Path) -> SourceError:
    remedy = bundle_commands(name, path) if path.is_dir() else "Correct the pin's `path`."
    return SourceError(name, f"{path} is not a file of `git bundle`", "a git bundle", remedy)


def _listed(heads: Mapping[str, str]) -> str:
    more = [f"{len(heads) - _MAX_LISTED} more"] if len(heads) > _MAX_LISTED else []
    return ", ".join([*(f"{name} {commit}" for name, commit in sorted(heads.items())[:_MAX_LISTED]), *more]) + "."


def _propose(path: Path) -> dict[str, str] | None:
    heads = bundle_heads(path) if path.is_file() else None
    if heads is None:
        return None
    if not heads:
        raise PinError(
            f"bundle {path.name}", "it has no ref", "one branch", "Bundle one: `git bundle create FILE BRANCH`."
        )
    commit = only_head(heads)
    if commit is None:
        written = f'Write the entry with kind = "git", path = "{path.name}" and the commit of one: {_listed(heads)}'
        raise PinError(f"bundle {path.name}", "it has no HEAD, and several refs", "one branch", written)
    return {"path": str(path), "commit": commit}


def _require_commit(pin: GitPin, repository: Path) -> None:
    kind = run_git(repository, ["cat-file", "-t", pin.commit]).decode().strip()
    if kind == "commit":
        return
    remedy = "Pin a commit."
    if kind == "tag":
        commit = run_git(repository, ["rev-parse", f"{pin.commit}^{{commit}}"]).decode().strip()
        remedy = f'Review it, then write commit = "{commit}", the commit that the tag names.'
    raise SourceError(pin.name, f"{pin.commit} is the id of a {kind}", "the id of a commit", remedy)


def _only_pack(pin: GitPin, repository: Path) -> Path:
    packs = sorted(repository.glob("objects/pack/*.pack"))
    if len(packs) != 1:
        raise SourceError(pin.name, f"{pin.place} arrived as {len(packs)} packs", "one pack", "Run again.")
    return packs[0]


KIND = SourceKind(
    GitPin,
    _fetch,
    _read,
    _propose,
    origin=lambda pin: Origin(f"git commit {pin['revision']}"),
    listing=_listing,
    newest=_newest,
    reads_path=False,
)
