"""The `git` command in isolation: without hooks, filters, prompts, helpers or anyone's settings.

Neither the system's nor the user's configuration is read, and no repository here is created from a template.
"""

import os
import resource
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from pipeline.core.child_process import kill_group
from pipeline.core.errors import SourceError

_ISOLATED = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
}
_LOCAL_ONLY = {"HOME": os.devnull, "XDG_CONFIG_HOME": os.devnull, "GIT_ALLOW_PROTOCOL": "none"}
_ONLINE = {"GIT_ALLOW_PROTOCOL": "file:http:https:ssh", "GIT_PROTOCOL_FROM_USER": "0", "GIT_ASKPASS": "true"}
_KEPT = frozenset({"GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_PROXY_SSL_CAINFO"})
_SETTINGS = ("core.hooksPath=/dev/null", f"core.attributesFile={os.devnull}", "core.fsmonitor=false", "gc.auto=0")


def create_repository(folder: Path, commit: str) -> None:
    """Create an empty bare repository for the hash algorithm of the commit: SHA-1 ids have 40 digits, SHA-256 ids 64."""
    hash_name = "sha1" if len(commit) == 40 else "sha256"
    run_git(folder.parent, ["init", "--quiet", "--bare", "--template=", f"--object-format={hash_name}", folder.name])


def run_git(folder: Path, arguments: Sequence[str], lines: Iterable[str] = ()) -> bytes:
    """Run git locally and return what it prints. Raises SourceError with git's message."""
    with stream_git(folder, arguments, lines) as output:
        return output.read()


@contextmanager
def stream_git(folder: Path, arguments: Sequence[str], lines: Iterable[str] = ()) -> Iterator[BinaryIO]:
    """Run git locally and stream its output; `lines` are its standard input. Raises SourceError if it fails."""
    with TemporaryFile() as stdin, TemporaryFile() as stderr:
        stdin.writelines(f"{line}\n".encode() for line in lines)
        stdin.seek(0)
        process = _popen(folder, arguments, _local_environment(), stdin=stdin, stdout=PIPE, stderr=stderr)
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
            stderr.seek(0)
            raise SourceError(f"git {arguments[0]}", error_message(stderr.read()), "git to succeed", "Build again.")


def start_git(folder: Path, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start git locally with pipes for its standard input and output, as a context that closes them and waits."""
    return _popen(folder, arguments, _local_environment(), stdin=PIPE, stdout=PIPE, stderr=DEVNULL)


def run_online(
    folder: Path,
    arguments: Sequence[str],
    max_file_bytes: int,
    deadline_seconds: float,
    output: BinaryIO | int = DEVNULL,
) -> tuple[int, str]:
    """Run git against another repository, within a size and a time; return its exit status and error message.

    What it prints goes to the file `output`, if one is given. The status is -9 if it was stopped at the deadline; a file over the
    limit ends it too, with another status.
    """
    with TemporaryFile() as stderr:
        process = _popen(folder, arguments, _online_environment(), stdin=DEVNULL, stdout=output, stderr=stderr)
        with suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
        try:
            status = process.wait(deadline_seconds)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
        finally:
            kill_group(process)
        stderr.seek(0)
        return status, error_message(stderr.read())


def error_message(stderr: bytes) -> str:
    """Return the errors that git reported on one line, safe to print whatever the server sent."""
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    lines = ["".join(letter if letter.isprintable() else "?" for letter in line) for line in lines]
    errors = [line for line in lines if line.startswith(("fatal: ", "error: ", "remote: ", "ssh: "))]
    return "; ".join(errors or lines[-1:])[:600] or "git printed no message"


def _popen(
    folder: Path, arguments: Sequence[str], environment: dict[str, str], **streams: Any
) -> subprocess.Popen[bytes]:
    settings = [argument for setting in _SETTINGS for argument in ("-c", setting)]
    command = ["git", *settings, *arguments]
    try:
        return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **streams)
    except FileNotFoundError as error:
        remedy = "Install git, or pin an archive of the same tree."
        raise SourceError("git", "is not installed", "git 2.32 or newer, for pins of kind git", remedy) from error


def _local_environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), **_ISOLATED, **_LOCAL_ONLY}


def _online_environment() -> dict[str, str]:
    # The user's keys, netrc, proxies and certificates are kept; variables that configure git itself are not.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    return {**kept, **_ISOLATED, **_ONLINE}
