"""A build on a Ray cluster ends in the golden id, also with a node killed in each stage; a wrong cluster is refused in words."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, ProgressEvent, open_build
from pipeline.build.engines.engine_kinds import open_engine
from pipeline.build.recipes import pins_of, recipe_of
from pipeline.build.run_stage import run_stages
from pipeline.core.errors import StageError
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store
from tests.pipeline.build.engines.ray_cluster import ray_cluster
from tests.support.paths import ROOT, golden_id

TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "of-these-tests"}


@pytest.mark.slow
def test_a_node_killed_in_each_stage_moves_no_id(tmp_path: Path) -> None:
    tiny = recipe_of("tiny")
    killed: list[str] = []
    with ray_cluster() as cluster:

        def kill(event: ProgressEvent) -> None:
            if event.stage not in killed and event.num_done == 1:
                killed.append(event.stage)
                node = cluster.add_node(num_cpus=1, memory=2 << 30, object_store_memory=80 << 20)
                victims = [each for each in cluster.worker_nodes if each is not node]
                cluster.remove_node(victims[0], allow_graceful=False)

        request = BuildRequest("tiny", tiny.params, pins_of(tiny), "a test", engine="ray", address=cluster.address)
        with open_build(request, Store(tmp_path / "store"), kill) as build:
            results = list(run_stages(build))

    assert killed == list(STAGES.names)
    assert results[-1].snapshot_id == golden_id()


@pytest.mark.slow
def test_the_commands_of_the_page_on_scale_build_on_a_cluster_that_ray_started(tmp_path: Path) -> None:
    if find_spec("ray") is None:
        pytest.skip("ray is not installed")
    ray, address = [str(Path(sys.executable).with_name("ray"))], "127.0.0.1:6390"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"} | TOKEN
    head = ["start", "--head", "--port", "6390", "--num-cpus", "1", "--include-dashboard", "false"]
    build = ["-m", "pipeline", "build", "--recipe", "tiny", "--store", str(tmp_path), "--no-report", "--json"]
    try:
        subprocess.run([*ray, *head], check=True, capture_output=True, env=environment)
        line = [sys.executable, *build, "--engine", "ray", "--address", address]
        done = subprocess.run(line, check=False, capture_output=True, text=True, env=environment, cwd=ROOT)
    finally:
        subprocess.run([*ray, "stop", "--force"], check=False, capture_output=True, env=environment)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["snapshot_id"] == golden_id()


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nowhere", "10.0.0.1", "[::1", "a:b", "127.0.0.1:99999"])
def test_an_address_without_a_cluster_is_a_sentence_at_once(address: str, tmp_path: Path) -> None:
    with ray_cluster(num_nodes=0), pytest.raises(StageError, match="ray start --head"):
        open_engine("ray", 1, address, tmp_path)


def test_a_node_with_other_code_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.build.engines.node_check.code_digest", lambda: "0" * 64)  # of this process alone
    with (
        ray_cluster() as cluster,
        pytest.raises(StageError, match=r"node \w+ of the Ray cluster: the code of its pipeline is"),
    ):
        open_engine("ray", 1, cluster.address, tmp_path)
