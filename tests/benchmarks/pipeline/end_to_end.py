"""From cached archives to a candidate snapshot, and what Dagster adds to a build that changes nothing."""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from assets import jobs
from pipeline.build.recipes import ROOT
from pipeline.pins.corpora import Corpus
from tests.benchmarks.assets.nights import ask, served
from tests.benchmarks.figure import Figure

NUM_PAIRS = 3
REACH_QUICK_MB_PER_SECOND = 0.5
REACH_FULL_MB_PER_SECOND = 2.5
REACH_OVERHEAD_SECONDS = 10.0
REACH_SECONDS_OF_UI = 5.0
_LAUNCH = """mutation($given: ExecutionParams!) { launchRun(executionParams: $given) {
    ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
_STATUS = "query($run: ID!) { runOrError(runId: $run) { ... on Run { status } } }"


def end_to_end_quick() -> list[Figure]:
    """The quick slice, two workers, every gate on, archives in the store: MB/s of C and C++ by stage and in all; peak memory."""
    answer = _build_from_archives("quick")
    num_bytes = next(stage["num_bytes_in"] for stage in answer["stages"] if stage["name"] == "normalize")
    speed = num_bytes / 1e6 / answer["seconds"]
    gibibytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    figures = [
        Figure("end-to-end-quick", round(speed, 3), "MB/s", ">= 0.5 MB/s", speed >= REACH_QUICK_MB_PER_SECOND),
        Figure("end-to-end-quick/peak-memory", round(gibibytes, 3), "GiB, largest process", "reported", True),
    ]
    for stage in answer["stages"]:
        value = round(num_bytes / 1e6 / stage["seconds"], 2)
        figures.append(Figure(f"end-to-end-quick/{stage['name']}", value, "MB/s", "reported", True))
    return figures


def end_to_end_full() -> list[Figure]:
    """The full slice as above, and the padding of its rows."""
    answer = _build_from_archives("full")
    num_bytes = next(stage["num_bytes_in"] for stage in answer["stages"] if stage["name"] == "normalize")
    speed = num_bytes / 1e6 / answer["seconds"]
    gibibytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    padding = next(stage["measures"] for stage in answer["stages"] if stage["name"] == "tokenize")["padding_fraction"]
    figures = [
        Figure("end-to-end-full", round(speed, 3), "MB/s", ">= 2.5 MB/s", speed >= REACH_FULL_MB_PER_SECOND),
        Figure("end-to-end-full/peak-memory", round(gibibytes, 3), "GiB, largest process", "<= 4 GiB", gibibytes <= 4),
        Figure("packing/padding-full", round(padding, 4), "share of slots", "<= 0.01", padding <= 0.01),
    ]
    for stage in answer["stages"]:
        value = round(num_bytes / 1e6 / stage["seconds"], 2)
        figures.append(Figure(f"end-to-end-full/{stage['name']}", value, "MB/s", "reported", True))
    return figures


def _build_from_archives(recipe: str) -> dict[str, Any]:
    """Fetch what the recipe pins, then build it in a store that holds nothing but the archives."""
    with tempfile.TemporaryDirectory() as folder:
        fetched, fresh = Path(folder) / "fetched", Path(folder) / "fresh"
        build(fetched, recipe, "--until", "collect")
        fresh.mkdir()
        shutil.copytree(fetched / "blobs", fresh / "blobs")
        return build(fresh, recipe, "--offline")


def dagster_overhead() -> list[Figure]:
    """An unchanged build of the made corpus, through `dg launch` and through the command line, in turn; then launched in the UI."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # the UI ends when it may
        root, home = Path(folder) / "store", Path(folder) / "home"
        build(root, "tiny")
        pairs = [(_launch(root, home), _seconds_of_build(root)) for _ in range(NUM_PAIRS)]
        with served({**os.environ, "DAGSTER_HOME": str(home), "SLUICE_STORE": str(root)}) as port:
            from_ui = statistics.median(_seconds_from_ui(port) for _ in range(NUM_PAIRS))
    through_dagster, plain = (statistics.median(times) for times in zip(*pairs, strict=True))
    overhead = through_dagster - plain
    most = overhead + REACH_SECONDS_OF_UI
    return [
        Figure(
            "dagster-overhead",
            round(overhead, 2),
            "s more than the command line",
            "<= 10 s",
            overhead <= REACH_OVERHEAD_SECONDS,
            peer="python -m pipeline build, unchanged, whole process, s",
            peer_value=round(plain, 2),
            ratio=round(through_dagster / plain, 2),
        ),
        Figure(
            "dagster-overhead/from-the-ui",
            round(from_ui, 2),
            "s from Launch to the end",
            f"<= {REACH_SECONDS_OF_UI:g} s more than the overhead",
            from_ui <= most,
            peer="the overhead, s",
            peer_value=round(overhead, 2),
            ratio=round(from_ui / overhead, 2),
        ),
    ]


def build(root: Path, recipe: str, *more: str) -> dict[str, Any]:
    """Build a recipe into a store with the command line; returns its answer."""
    command = [
        sys.executable,
        "-m",
        "pipeline",
        "build",
        "--recipe",
        recipe,
        "--workers",
        "2",
        "--store",
        str(root),
        "--json",
    ]
    done = subprocess.run([*command, *more], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _seconds_of_build(root: Path) -> float:
    started = time.monotonic()
    build(root, "tiny")
    return time.monotonic() - started


def _seconds_from_ui(port: int) -> float:
    job = {"repositoryLocationName": "sluice", "repositoryName": "__repository__", "jobName": "build_tiny"}
    config = json.dumps(jobs.build_config(Corpus(name="tiny", recipe="tiny")))
    started = time.monotonic()
    launched = ask(port, _LAUNCH, given={"selector": job, "runConfigData": config})["launchRun"]
    run, status = launched["run"]["runId"], ""
    while status not in ("SUCCESS", "FAILURE", "CANCELED"):
        time.sleep(0.1)
        status = ask(port, _STATUS, run=run)["runOrError"]["status"]
    if status != "SUCCESS":
        raise RuntimeError(f"run {run} ended as {status}")
    return time.monotonic() - started


def _launch(root: Path, home: Path) -> float:
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text().replace("./store", str(home)))
    config = home / "config.json"
    config.write_text(json.dumps(jobs.build_config(Corpus(name="tiny", recipe="tiny"))))
    command = [str(Path(sys.executable).parent / "dg"), "launch", "--job", "build_tiny", "--config", str(config)]
    environment = {**os.environ, "DAGSTER_HOME": str(home), "SLUICE_STORE": str(root)}
    started = time.monotonic()
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
    return time.monotonic() - started
