"""Runs of a team: launched by commands and by the daemon, while the database is restarted and while it is down for longer."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.deploy.compose_services import ServicesHere, command_of, services_here
from tests.deploy.postgres_server import PostgresServer, postgres_server

FINISHED = ("SUCCESS", "FAILURE", "CANCELED")
WORKSPACE = "deploy/workspace.yaml"
CORPORA = """[[corpus]]
name = "tiny"
recipe = "tiny"
nightly = "* * * * *"
"""
"""Each minute is a night."""
_TIMEOUT_SECONDS = 600.0


@dataclass
class TeamHere:
    """Database, code and daemon of a team on this machine, with its store in a folder; a service that ends is started again."""

    services: ServicesHere
    server: PostgresServer
    restarts: int = field(default=0, init=False)
    """Times that a service had ended and was started again, as compose does."""

    def launch(self, job: str) -> str:
        """Launch a job by the command, and return the run's id."""
        done = self.services.run("code", "dagster", "job", "launch", "-w", self.services.here(WORKSPACE), "-j", job)
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        return done.stderr.rpartition("run ")[2].split()[0] if "run " in done.stderr else ""

    def runs(self) -> list[tuple[str, str, str]]:
        """Return id, job and status of all runs, in the order in which they were made."""
        return runs_in(self.server)

    def wait(self, is_done: Any, what: str) -> None:
        """Wait until the runs are so, and start what has ended again meanwhile."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while not is_done(self.runs()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: {self.runs()}\n{self.services.said('daemon')[-3000:]}")
            self.tend()
            time.sleep(1.0)

    def tend(self) -> None:
        """Start each service that has ended again."""
        for name in ("code", "daemon"):
            if self.services.exit_code(name) is not None:
                self.restarts += 1
                self.start(name)

    def start(self, name: str) -> None:
        """Start a service as it is declared; the code without joining a cluster of Ray."""
        words = command_of(self.services.services[name])
        self.services.start(name, words[-1].partition("exec ")[2].split() if name == "code" else words)

    def interrupt(self, seconds: float) -> None:
        """Stop the database, and start it again after a while."""
        self.server.stop()
        time.sleep(seconds)
        self.server.start()


@contextmanager
def team_here(folder: Path, corpora: str = CORPORA) -> Iterator[TeamHere]:
    """Yield a team whose services run. Skips the test where PostgreSQL is not installed."""
    with services_here(folder) as services:
        (folder / "home/corpora.toml").write_text(corpora)
        for service in services.services.values():
            service["environment"]["SLUICE_STORE"] = str(folder / "store")
        declared = command_of(services.services["postgres"])
        with postgres_server(services.ports["postgres"], declared) as server:
            team = TeamHere(services, server)
            team.start("code")
            services.wait_for("code", services.services["code"]["healthcheck"]["test"][1:])
            team.start("daemon")
            yield team


def finished_runs(server: PostgresServer, number: int) -> list[tuple[str, str]]:
    """Wait until so many runs have ended, and return job and status of each."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while len(runs := runs_in(server)) < number or stuck(runs):
        if time.monotonic() > deadline:
            raise TimeoutError(str(runs))
        time.sleep(1.0)
    return [run[1:] for run in runs]


def runs_in(server: PostgresServer) -> list[tuple[str, str, str]]:
    """Return id, job and status of all runs of a database, in the order in which they were made."""
    import psycopg2

    connection = psycopg2.connect(server.address)
    with connection, connection.cursor() as cursor:
        cursor.execute("select run_id, pipeline_name, status from runs order by id")
        found: list[tuple[str, str, str]] = cursor.fetchall()
    connection.close()
    return found


def stuck(runs: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Return the runs that have not ended."""
    return [run for run in runs if run[2] not in FINISHED]
