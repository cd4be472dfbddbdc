"""The services of `deploy/compose.yaml`, each started by its command: a night on the cluster, in the bucket, seen read-only."""

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.deploy.compose_services import MARK, ServicesHere, command_of, processes_with, services_here
from tests.deploy.postgres_server import PostgresServer, postgres_server
from tests.deploy.team_runs import WORKSPACE, finished_runs, stuck, team_here
from tests.pipeline.storage.s3_server import make_bucket, s3_server
from tests.support.paths import golden_id

MUTATION = 'mutation { wipeAssets(assetPartitionRanges: [{assetKey: {path: ["tiny", "live"]}}]) { __typename } }'


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServicesHere, PostgresServer]]:
    """All services, in the order of the file: each once the health check of the one before has succeeded."""
    if find_spec("ray") is None:
        pytest.skip("ray is not installed")
    folder = tmp_path_factory.mktemp("team")
    with services_here(folder) as services:
        declared = command_of(services.services["postgres"])
        with (
            postgres_server(services.ports["postgres"], declared) as server,
            s3_server(services.ports["objects"]) as endpoint,
        ):
            make_bucket(endpoint, "sluice")
            services.start("ray-head")
            head = f"127.0.0.1:{services.ports['ray-head']}"
            services.wait_for("ray-head", ["ray", "status", "--address", head])
            services.start("ray-node")  # of one address, as here, nodes join one after the other
            services.wait_for("ray-node", ["sh", "-c", f"test $(ray status --address {head} | grep -c node_) -ge 2"])
            services.start("code")
            services.wait_for("code", services.services["code"]["healthcheck"]["test"][1:])
            services.start("daemon")
            services.start("webserver")
            yield services, server


@pytest.mark.slow
def test_a_night_of_the_team_ends_in_the_golden_id(started: tuple[ServicesHere, PostgresServer]) -> None:
    services, server = started
    launched = services.run("code", "dagster", "job", "launch", "-w", services.here(WORKSPACE), "-j", "nightly_tiny")
    assert launched.returncode == 0, launched.stderr

    assert finished_runs(server, 1) == [("nightly_tiny", "SUCCESS")], services.said("code")[-4000:]
    shown = services.run("code", "python", "-m", "pipeline", "show", "live", "--corpus", "tiny", "--json")
    assert golden_id() in shown.stdout, shown.stdout + shown.stderr
    nodes = services.run("code", "ray", "status", "--address", f"127.0.0.1:{services.ports['ray-head']}")
    assert nodes.stdout.count("node_") >= 3, nodes.stdout


@pytest.mark.slow
def test_the_webserver_of_the_team_is_read_only_behind_the_check(started: tuple[ServicesHere, PostgresServer]) -> None:
    services, _ = started
    address = f"http://localhost:{services.ports['webserver']}"
    services.wait_for("webserver", ["python", "-c", f"import urllib.request as u; u.urlopen('{address}/server_info')"])

    assert "UnauthorizedError" in _ask(address, MUTATION, {})
    assert "dagster_webserver_version" in urllib.request.urlopen(f"{address}/server_info").read().decode()
    with pytest.raises(urllib.error.HTTPError, match="403"):
        _ask(address, "query { version }", {"Origin": "http://evil.example"})


@pytest.mark.slow
def test_the_commands_of_the_page_on_scale_are_answered(started: tuple[ServicesHere, PostgresServer]) -> None:
    services, _ = started
    ended = 'mutation { terminateRun(runId: "none") { __typename } }'
    asked = services.run("code", "dagster-graphql", "-w", services.here(WORKSPACE), "-t", ended)
    bounded = services.run("code", "dagster", "instance", "concurrency", "set", "train", "1")
    shown = services.run("code", "dagster", "instance", "concurrency", "get", "train")

    assert "RunNotFoundError" in asked.stdout, asked.stderr
    assert bounded.returncode == 0, bounded.stderr
    assert "1" in shown.stdout


def test_a_service_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    with services_here(tmp_path / "here") as services:
        services.start("daemon", ["sh", "-c", "setsid sleep 300 & sleep 300"])
        mark = f"{MARK}={services.folder}/daemon".encode()
        while len(processes_with(mark)) < 3:
            assert services.exit_code("daemon") is None
        services.kill("daemon")
        assert processes_with(mark) == []


@pytest.mark.slow
def test_the_object_server_starts_as_declared(tmp_path: Path) -> None:
    if shutil.which("minio") is None:
        pytest.skip("minio is not installed")
    with services_here(tmp_path) as services:
        services.start("objects")
        services.wait_for("objects", ["curl", "-fs", f"http://127.0.0.1:{services.ports['objects']}/minio/health/live"])


@pytest.mark.slow
def test_a_run_whose_database_is_restarted_ends_well_or_is_launched_again(tmp_path: Path) -> None:
    corpora = '[[corpus]]\nname = "tiny"\nrecipe = "tiny"\n'
    with team_here(tmp_path / "here", corpora) as team:
        team.launch("build")
        team.wait(lambda runs: runs[0][2] == "STARTED", "the start")
        team.interrupt(0.0)
        team.wait(lambda runs: runs[-1][2] == "SUCCESS" and not stuck(runs), "the end")


def _ask(address: str, query: str, headers: dict[str, str]) -> str:
    body = json.dumps({"query": query}).encode()
    asked = urllib.request.Request(f"{address}/graphql", body, {"Content-Type": "application/json", **headers})
    try:
        return urllib.request.urlopen(asked).read().decode()  # type: ignore[no-any-return]
    except urllib.error.HTTPError as error:
        if error.code == 403:
            raise
        return error.read().decode()
