"""Services of deploy/compose.yaml as processes of this machine: the same commands and files, other addresses and folders."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.postgres_server import free_port
from tests.support.paths import ROOT

DEPLOY = ROOT / "deploy"
PORTS = {"postgres": 5432, "objects": 9000, "ray-head": 6379, "code": 4000, "webserver": 3000}
"""The port of each service, as the files of `deploy/` have it."""
SECRETS = {"DATABASE_PASSWORD": "of-these-tests", "S3_SECRET": "secret-of-tests", "RAY_TOKEN": "token-of-these-tests"}
FILES = ("dagster.yaml", "workspace.yaml", "corpora.toml")
MARK = "SLUICE_TEST_SERVICE"
"""A variable that a service and all that it starts have."""
RAY_HERE = {"RAY_raylet_start_wait_time_s": "180", "RAY_memory_usage_threshold": "1.0"}
"""A machine of tests is small and busy."""
_VARIABLE = re.compile(r"\$\{(\w+)[^}]*\}")


def declared_services() -> dict[str, Any]:
    """Read the services as they are declared."""
    services: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return services


def command_of(service: Mapping[str, Any]) -> list[str]:
    """Return the whole command of a service."""
    parts = (service.get("entrypoint", []), service.get("command", []))
    return [word for part in parts for word in (shlex.split(part) if isinstance(part, str) else part)]


@dataclass
class ServicesHere:
    """The services in a folder of this machine, each started by itself."""

    folder: Path
    ports: dict[str, int] = field(default_factory=lambda: {name: free_port() for name in PORTS})
    services: dict[str, Any] = field(init=False)
    _ray: str = field(default_factory=lambda: tempfile.mkdtemp(prefix="ray-"), init=False)
    """Ray's folder: a path of a socket has at most 107 characters."""
    _running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        (self.folder / "home").mkdir(parents=True)
        for name in FILES:
            (self.folder / "home" / name).write_text(self.here((DEPLOY / name).read_text()))
        text = _VARIABLE.sub(lambda found: SECRETS[found[1]], self.here((DEPLOY / "compose.yaml").read_text()))
        self.services = yaml.safe_load(text)["services"]
        self._make_programs()

    def here(self, text: str) -> str:
        """Return a text of `deploy/` with the addresses, ports and folders of this machine."""
        for name, port in PORTS.items():
            text = text.replace(f"{name}:{port}", f"127.0.0.1:{self.ports[name]}").replace(
                str(port), str(self.ports[name])
            )
        home = f"{self.folder}/home/"
        pairs = (
            ("host: code", "host: 127.0.0.1"),
            ("0.0.0.0", "127.0.0.1"),
            ("/sluice/deploy/", home),
            ("deploy/workspace.yaml", f"{home}workspace.yaml"),
            ("/data/", f"{self.folder}/data/"),
        )
        for before, after in pairs:
            text = text.replace(before, after)
        return text

    def environment(self, name: str) -> dict[str, str]:
        """Return the environment of a service, or of a command that is run in it."""
        own = {key: str(value) for key, value in self.services[name]["environment"].items()}
        paths = f"{self.folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        home = {"DAGSTER_HOME": str(self.folder / "home"), "PYTHONPATH": str(ROOT), "PATH": paths}
        return {**os.environ, **home, **own, **RAY_HERE, "RAY_TMPDIR": self._ray, MARK: f"{self.folder}/{name}"}

    def start(self, name: str, command: Sequence[str] = ()) -> None:
        """Start a service by its command; its output is in the folder. `command` is one in its place."""
        line = [*(command or command_of(self.services[name]))]
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                line, cwd=ROOT, env=self.environment(name), stdout=log, stderr=log, start_new_session=True
            )

    def wait_for(self, name: str, test: Sequence[str], timeout_seconds: float = 300.0) -> None:
        """Wait until a command, as that of a health check, succeeds while its service runs."""
        deadline = time.monotonic() + timeout_seconds
        while (done := self.run(name, *test)).returncode:
            if time.monotonic() > deadline or self.exit_code(name) is not None:
                raise RuntimeError(f"{name}: {done.stderr[-500:]}{self.said(name)[-2000:]}")
            time.sleep(0.5)

    def run(self, name: str, *line: str, timeout_seconds: float = 300.0) -> "subprocess.CompletedProcess[str]":
        """Run a command in a service, as `docker compose exec` does."""
        return subprocess.run(
            line,
            cwd=ROOT,
            env=self.environment(name),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_seconds,
        )

    def said(self, name: str) -> str:
        """Return what a service has written."""
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def exit_code(self, name: str) -> int | None:
        """Return how a service ended; None while it runs, or where it was not started."""
        return self._running[name].poll() if name in self._running else None

    def kill(self, name: str) -> None:
        """End a service and all that it started with -9, also what no longer descends from it, as a container that is removed."""
        mark = f"{MARK}={self.folder}/{name}".encode()
        while found := processes_with(mark):
            for process in found:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.1)
        self._running.pop(name).wait()

    def _make_programs(self) -> None:
        """Write the commands of the image: those of the libraries of this Python."""
        folder = self.folder / "bin"
        folder.mkdir()
        for name in ("dagster", "dagster-daemon", "dagster-graphql", "dagster-webserver", "ray"):
            for point in entry_points(group="console_scripts", name=name):
                code = f"import sys; from {point.module} import {point.attr}; sys.argv[0] = '{name}'; sys.exit({point.attr}())"
                (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}" "$@"\n')
                (folder / name).chmod(0o755)


@contextmanager
def services_here(folder: Path) -> Iterator[ServicesHere]:
    """Yield the services, none of them started, and end at last all that were."""
    services = ServicesHere(folder)
    try:
        yield services
    finally:
        for name in reversed(services._running.copy()):
            services.kill(name)
        shutil.rmtree(services._ray, ignore_errors=True)


def processes_with(variable: bytes) -> list[int]:
    """List the processes that were started with a variable, as NAME=VALUE, and still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has just ended, or is another user's
            found += [int(path.parent.name)] if variable in path.read_bytes().split(b"\0") else []
    return found
