"""The database of a team: one that cannot be used is a sentence; hosts end runs of their own; old runs go from it whole."""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from click import ClickException

from assets.definitions import defs
from assets.instance import HOST_TAG, WORKER_TAG, old_runs, remove_runs, size_of, sweep, worker_of
from assets.team import database
from assets.team.database import TeamStorage, database_of, database_size, shown_address, wait_for_answer
from pipeline.core.errors import StoreError
from tests.deploy.postgres_server import PostgresServer, free_port, postgres_server
from tests.support.paths import ROOT

NAMED = "postgresql+psycopg2://sluice:hush@127.0.0.1:{port}/{name}"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as started:
        yield started


@pytest.fixture
def shared(server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """The instance of `deploy/dagster.yaml` in that database."""
    (tmp_path / "dagster.yaml").write_text((ROOT / "deploy/dagster.yaml").read_text())
    monkeypatch.setenv("SLUICE_DATABASE", server.address)
    monkeypatch.setenv("SLUICE_LOGS", str(tmp_path / "logs"))
    with dg.DagsterInstance.from_config(str(tmp_path)) as opened:
        opened.wipe()
        yield opened


def test_without_the_extra_the_remedy_is_its_installation() -> None:
    if find_spec("dagster_postgres") is not None:
        with pytest.MonkeyPatch.context() as hidden:
            hidden.setitem(sys.modules, "dagster_postgres", None)
            _refuse_without_the_extra()
    else:
        _refuse_without_the_extra()


def _refuse_without_the_extra() -> None:
    with pytest.raises(ClickException, match=r"pip install -e \"\.\[postgres\]\""):
        TeamStorage.from_config_value(None, {"postgres_url": NAMED.format(port=1, name="sluice")})


def test_an_address_is_shown_without_its_password() -> None:
    assert shown_address(NAMED.format(port=5432, name="sluice")) == NAMED.format(port=5432, name="sluice").replace(
        "hush", "***"
    )


def test_a_server_that_is_down_or_at_a_wrong_address_is_a_sentence(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "WAITS_SECONDS", (0.1,))
    own = server.address.replace("postgresql:", "postgresql+psycopg2:")
    for address, found in (
        (NAMED.format(port=free_port(), name="sluice"), "Connection refused"),
        (NAMED.format(port=server.port, name="sluice"), "password authentication failed"),
        (own.removesuffix("/sluice") + "/nowhere", 'database "nowhere" does not exist'),
        (own.replace("127.0.0.1", "no-such-host.invalid"), "could not translate host name"),
        ("mongodb://127.0.0.1/sluice", "it is of another kind"),
    ):
        with pytest.raises(StoreError) as caught:
            wait_for_answer(address)
        assert found in str(caught.value)
        assert "hush" not in str(caught.value)
        assert server.password not in str(caught.value)
        assert "Start the server, or correct the address" in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        ["dagster", "job", "launch", "-w", "deploy/workspace.yaml", "-j", "nightly"],
        ["dagster._daemon", "run", "-w", "deploy/workspace.yaml"],
        ["assets.web", "--read-only", "--port", "1"],
        ["assets.instance", "clean"],
    ],
    ids=["a launch", "the daemon", "the webserver", "cleaning"],
)
def test_each_command_says_that_the_database_is_down_in_one_sentence(line: list[str], tmp_path: Path) -> None:
    if find_spec("dagster_postgres") is None:
        pytest.skip("dagster-postgres is not installed")
    variables = {
        "DAGSTER_HOME": str(ROOT / "deploy"),
        "SLUICE_DATABASE": f"postgresql://sluice:hush@127.0.0.1:{free_port()}/no",
        "SLUICE_LOGS": str(tmp_path),
        "SLUICE_CORPORA": str(ROOT / "corpora.toml"),
    }
    code = "import runpy, sys; from assets.team import database; database.WAITS_SECONDS = (); sys.argv = sys.argv[1:]; "
    code += "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
    done = subprocess.run(
        [sys.executable, "-c", code, *line],
        cwd=ROOT,
        env={**os.environ, **variables, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "Connection refused; expected an answer. Start the server, or correct the address" in done.stderr
    assert "hush" not in done.stderr


def test_a_server_that_is_still_starting_is_waited_for(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.stop()
    waited: list[float] = []

    def start(seconds: float) -> None:
        waited.append(seconds)
        server.start()

    with monkeypatch.context() as changed:
        changed.setattr(database, "time", SimpleNamespace(sleep=start))
        wait_for_answer(server.address.replace("postgresql:", "postgresql+psycopg2:"))

    assert waited == [database.WAITS_SECONDS[0]]


def test_a_host_ends_dead_runs_of_its_own_name_alone(
    shared: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.node", lambda: "here")
    boot, *rest = worker_of(os.getpid()).split(":")
    gone = ":".join(["0" * len(boot), *rest])
    runs = {host: _started(shared, {WORKER_TAG: gone, HOST_TAG: host}) for host in ("here", "elsewhere")}
    alive = _started(shared, {WORKER_TAG: worker_of(os.getpid()), HOST_TAG: "here"})

    assert sweep(shared) == [runs["here"]]
    statuses = {run.run_id: run.status.value for run in shared.get_runs()}
    assert statuses == {runs["here"]: "FAILURE", runs["elsewhere"]: "STARTED", alive: "STARTED"}
    checks = shared.event_log_storage.get_asset_check_execution_history
    (check, *_) = defs.resolve_job_def("build").asset_layer.asset_graph.asset_check_keys
    assert {each.run_id for each in checks(check, 9)} == {runs["elsewhere"], alive}, "what it planned is taken back"


def test_old_runs_go_from_the_database_with_all_that_is_theirs(shared: dg.DagsterInstance) -> None:
    @dg.asset(check_specs=[dg.AssetCheckSpec("is_good", asset="stored")])
    def stored() -> Any:
        yield dg.MaterializeResult(check_results=[dg.AssetCheckResult(passed=True)])

    runs = [dg.materialize([stored], instance=shared).run_id for _ in range(2)]
    address = database_of(shared)
    assert address is not None
    assert size_of(shared) >= database_size(address) > 0
    remove_runs(shared, old_runs(shared, keep=0))

    assert [run.run_id for run in shared.get_runs()] == runs[1:]
    assert list(shared.all_logs(runs[0])) == []


def _started(instance: dg.DagsterInstance, tags: dict[str, str]) -> str:
    run = instance.create_run_for_job(defs.resolve_job_def("build"), tags=tags)
    instance.report_dagster_event(dg.DagsterEvent(dg.DagsterEventType.RUN_START.value, run.job_name), run.run_id)
    return run.run_id
