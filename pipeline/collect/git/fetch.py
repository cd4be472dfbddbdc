"""A pinned commit from a repository elsewhere, as one pack: the bytes of its objects, and nothing that could be executed."""

from pathlib import Path

from pipeline.collect.git.command import create_repository, run_git, run_online
from pipeline.collect.network.retry import Patience
from pipeline.core.errors import ArchiveError, FetchError, SourceError
from pipeline.pins.pins import GitPin

_SSH = "ssh -o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=15 -o ServerAliveCountMax=2"
_ABSENT = ("not our ref", "no such remote ref", "couldn't find remote ref", "bad object", "unadvertised object")
_FINAL = (
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


def fetch_commit(pin: GitPin, folder: Path, max_num_bytes: int, patience: Patience) -> Path:
    """Fetch the commit, with all its ancestors where the pin wants history, into `folder`; returns the pack there.

    Only what the commit needs is asked for, and nothing is checked out. Raises FetchError after the last attempt,
    SourceError where the id names something else than a commit.
    """
    failures: list[str] = []
    for attempt in range(1, patience.num_attempts + 1):
        repository = folder / f"attempt-{attempt}"
        create_repository(repository, pin.commit)
        failure = _attempt(pin, repository, max_num_bytes, patience)
        if failure is None:
            _require_commit(pin, repository)
            return _only_pack(pin, repository)
        failures.append(failure)
        if any(words in failure for words in _FINAL):
            break
        if attempt < patience.num_attempts:
            patience.wait(attempt)
    tried = "; ".join(f"attempt {number}: {failure}" for number, failure in enumerate(failures, start=1))
    remedy = "Check the pin's `url`, the network and your access, then run again."
    raise FetchError(pin.name, f"{pin.url} could not be fetched ({tried})", f"commit {pin.commit}", remedy)


def _attempt(pin: GitPin, repository: Path, max_num_bytes: int, patience: Patience) -> str | None:
    """Git's words where it failed. Raises at once what no other attempt would mend: an absent commit, a pack too large."""
    stall = max(1, round(patience.stall_timeout_seconds))
    settings = ("fetch.unpackLimit=1", "transfer.bundleURI=false", f"core.sshCommand={_SSH}", "http.lowSpeedLimit=1")
    options = [word for setting in (*settings, f"http.lowSpeedTime={stall}") for word in ("-c", setting)]
    fetch = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-gc"]
    depth = [] if pin.history else ["--depth=1"]
    arguments = [*options, *fetch, *depth, pin.url, pin.commit]
    status, said = run_online(repository, arguments, max_num_bytes, patience.deadline_seconds)
    if status == 0:
        return None
    if status == -9:
        return f"it was not done within {patience.deadline_seconds:.0f} s"
    if any(words in said for words in _ABSENT):
        remedy = f"Run `git ls-remote {pin.url}` and pin a commit that is there, or the repository that has this one."
        raise FetchError(
            pin.name, f"{pin.url} does not hand out commit {pin.commit} ({said})", "it to be there", remedy
        )
    if any(path.stat().st_size >= max_num_bytes for path in repository.glob("objects/pack/tmp_*")):
        remedy = "Leave out `history`, or raise the limit if you trust it."
        raise ArchiveError(pin.name, f"{pin.url} sends too much", f"a pack of at most {max_num_bytes} bytes", remedy)
    return said


def _require_commit(pin: GitPin, repository: Path) -> None:
    kind = run_git(repository, ["cat-file", "-t", pin.commit]).decode().strip()
    if kind == "commit":
        return
    remedy = "Pin a commit."
    if kind == "tag":
        commit = run_git(repository, ["rev-parse", f"{pin.commit}^{{commit}}"]).decode().strip()
        remedy = f'Review it, then write commit = "{commit}", which is what the tag names.'
    raise SourceError(pin.name, f"{pin.commit} is the id of a {kind}", "the id of a commit", remedy)


def _only_pack(pin: GitPin, repository: Path) -> Path:
    packs = sorted(repository.glob("objects/pack/*.pack"))
    if len(packs) != 1:
        raise SourceError(pin.name, f"{pin.url} arrived as {len(packs)} packs", "one pack", "Run again.")
    return packs[0]
