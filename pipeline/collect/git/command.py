"""Running `git` so that nothing but what is asked happens: no hooks, filters, prompts, helpers or settings of anyone's.

Neither the system's nor the user's configuration is read, and no repository here is made from a template.
"""

import os
import resource
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, BinaryIO

from pipeline.core.child_process import kill_group
from pipeline.core.errors import SourceError

_QUIET = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
}
_ALONE = {"HOME": os.devnull, "XDG_CONFIG_HOME": os.devnull, "GIT_ALLOW_PROTOCOL": "none"}
_ONLINE = {"GIT_ALLOW_PROTOCOL": "file:http:https:ssh", "GIT_PROTOCOL_FROM_USER": "0", "GIT_ASKPASS": "true"}
_KEPT = frozenset({"GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_PROXY_SSL_CAINFO"})
_SETTINGS = ("core.hooksPath=/dev/null", f"core.attributesFile={os.devnull}", "core.fsmonitor=false", "gc.auto=0")


def create_repository(folder: Path, commit: str) -> None:
    """An empty bare repository for objects of the commit's kind: SHA-1 ids have 40 digits, SHA-256 ids 64."""
    hash_name = "sha1" if len(commit) == 40 else "sha256"
    run_git(folder.parent, ["init", "--quiet", "--bare", "--template=", f"--object-format={hash_name}", folder.name])


def run_git(folder: Path, arguments: Sequence[str], lines: Iterable[str] = ()) -> bytes:
    """What git prints for local work. Raises SourceError with git's own words."""
    with started(folder, arguments, lines) as output:
        return output.read()


@contextmanager
def started(folder: Path, arguments: Sequence[str], lines: Iterable[str] = ()) -> Iterator[BinaryIO]:
    """The output of git at local work while it comes; `lines` are what it reads. Raises SourceError where it fails."""
    with TemporaryFile() as asked, TemporaryFile() as said:
        asked.writelines(f"{line}\n".encode() for line in lines)
        asked.seek(0)
        process = _popen(folder, arguments, _local_environment(), asked, said)
        assert process.stdout is not None  # it is a pipe
        try:
            yield process.stdout  # type: ignore[misc]  # a pipe reads like a file
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            process.stdout.close()
        if process.wait():
            said.seek(0)
            raise SourceError(f"git {arguments[0]}", last_words(said.read()), "git to succeed", "Build again.")


def converse(folder: Path, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    """Git at local work that answers what is written to its standard input. The caller ends it."""
    return _popen(folder, arguments, _local_environment(), subprocess.PIPE, subprocess.DEVNULL)


def run_online(folder: Path, arguments: Sequence[str], max_file_bytes: int, deadline_seconds: float) -> tuple[int, str]:
    """Exit status and last words of git at work with another repository, within a size and a time.

    The status of one that was stopped at the deadline is -9; a file over the limit ends it too, with a status of its own.
    """
    with TemporaryFile() as said:
        process = _popen(folder, arguments, _online_environment(), subprocess.DEVNULL, said, subprocess.DEVNULL)
        with suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
        try:
            status = process.wait(deadline_seconds)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
        finally:
            kill_group(process)
        said.seek(0)
        return status, last_words(said.read())


def last_words(said: bytes) -> str:
    """The errors that git reported, on one line, fit for a terminal whatever the other side said."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    lines = ["".join(letter if letter.isprintable() else "?" for letter in line) for line in lines]
    errors = [line for line in lines if line.startswith(("fatal: ", "error: ", "remote: ", "ssh: "))]
    return "; ".join(errors or lines[-1:])[:600] or "git said nothing"


def _popen(
    folder: Path,
    arguments: Sequence[str],
    environment: dict[str, str],
    asked: int | IO[bytes],
    said: int | IO[bytes],
    answered: int = subprocess.PIPE,
) -> subprocess.Popen[bytes]:
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    command = ["git", *settings, *arguments]
    try:
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdin=asked, stdout=answered, stderr=said, start_new_session=True
        )
    except FileNotFoundError as error:
        remedy = "Install git, or pin an archive of the same tree."
        raise SourceError("git", "is not installed", "git 2.32 or newer, for pins of kind git", remedy) from error


def _local_environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), **_QUIET, **_ALONE}


def _online_environment() -> dict[str, str]:
    """Keys, netrc, proxies and certificates stay those of the user; what steers git itself does not."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    return {**kept, **_QUIET, **_ONLINE}
