"""200 nightly runs in one instance: how long an asset's page takes, what a run adds, and both after old runs were removed.

One run of the job `nightly` of the made corpus is real. The others have its events, with ids and times of their own, written
through Dagster; the webserver and the daemon run as `make dev` starts them.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.events.log import EventLogEntry
from dagster._serdes import deserialize_value, serialize_value
from dagster_shared.record import copy

from assets.instance import old_runs, remove_runs, size_of
from tests.benchmarks.figure import Figure
from tests.benchmarks.store.gc_beside import memory
from tests.support.paths import ROOT

NUM_NIGHTS, NUM_KEPT = 200, 30
REACH_SECONDS = 3.0
SECONDS_OF_A_DAY = 86_400.0
TIMEOUT_SECONDS = 180.0
JOB, ASSET = "nightly_tiny", ["tiny", "verify"]
_METADATA = (
    "metadataEntries { label __typename ... on FloatMetadataEntry { floatValue } ... on TextMetadataEntry { text } }"
)
_OF_NODE = "query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode { %s } } }"
PAGE = (
    _OF_NODE
    % f"id jobNames description opVersion kinds staleStatus {_METADATA} assetMaterializations(limit: 1) {{ runId }}",
    _OF_NODE % f"assetMaterializations(limit: 100) {{ runId timestamp tags {{ key value }} {_METADATA} }}",
    _OF_NODE % "assetObservations(limit: 100) { runId timestamp }",
    _OF_NODE % "assetChecksOrError { ... on AssetChecks { checks { name executionForLatestMaterialization"
    f" {{ status timestamp evaluation {{ severity description {_METADATA} }} }} }} }} }}",
    "query($key: AssetKeyInput!) { assetOrError(assetKey: $key)"
    " { ... on Asset { assetHealth { assetHealth materializationStatus assetChecksStatus freshnessStatus } } } }",
)
"""Queries of what an asset's page shows when it opens: the definition, 100 materializations with their metadata, checks, health."""


def nights() -> list[Figure]:
    """Measure the page of an asset and the bytes of the instance after 200 nights, and after all but 30 were removed."""
    with memory() as folder:
        home = folder / "home"
        home.mkdir()
        (home / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text().replace("./store", str(home)))
        environment = {**os.environ, "DAGSTER_HOME": str(home), "SLUICE_STORE": str(folder / "store")}
        command = [str(Path(sys.executable).parent / "dg"), "launch", "--job", JOB]
        subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
        with dg.DagsterInstance.from_config(str(home)) as instance:
            before = size_of(instance)
            _replay(instance, NUM_NIGHTS - 1)
            whole = size_of(instance)
            with served(environment) as port:
                seconds = _seconds_to_open(port)
                remove_runs(instance, old_runs(instance, NUM_KEPT))
                num_left, cleaned = instance.get_runs_count(), size_of(instance)
                seconds_cleaned = _seconds_to_open(port)
    kilobytes = (whole - before) / (NUM_NIGHTS - 1) / 1e3
    left = cleaned / whole
    return [
        Figure("nights", seconds, f"s, a page after {NUM_NIGHTS} nights", "<= 3 s", seconds <= REACH_SECONDS),
        Figure("nights/run", round(kilobytes, 1), "kB that a run adds", "reported", True),
        Figure("nights/instance", round(whole / 1e6, 2), f"MB, {NUM_NIGHTS} nights", "reported", True),
        Figure("nights/cleaned", round(cleaned / 1e6, 2), f"MB, {num_left} nights kept", "<= 0.2 of it", left <= 0.2),
        Figure("nights/cleaned/page", seconds_cleaned, "s", "<= 3 s", seconds_cleaned <= REACH_SECONDS),
    ]


def _replay(instance: dg.DagsterInstance, num_runs: int) -> None:
    """Write the events of the only run again, as runs of the nights that follow."""
    (run,) = instance.get_runs()
    texts = [serialize_value(entry) for entry in instance.all_logs(run.run_id)]
    for number in range(1, num_runs + 1):
        run_id = str(uuid.UUID(int=number))
        instance.run_storage.add_run(copy(run, run_id=run_id, status=dg.DagsterRunStatus.NOT_STARTED))
        for text in texts:
            entry = deserialize_value(text.replace(run.run_id, run_id), EventLogEntry)
            moment = entry.timestamp - SECONDS_OF_A_DAY * (num_runs - number + 1)
            instance.handle_new_event(entry._replace(timestamp=moment))


@contextmanager
def served(environment: dict[str, str]) -> Iterator[int]:
    """Run the UI and the daemon as `make dev` does, and yield the port of the UI once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    command = [sys.executable, "-m", "assets.web", "--port", str(port)]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL, start_new_session=True
    ) as child:
        try:
            deadline = time.monotonic() + TIMEOUT_SECONDS
            while not _answers(port):
                if time.monotonic() > deadline or child.poll() is not None:
                    raise RuntimeError(f"the UI did not answer within {TIMEOUT_SECONDS:.0f} s")
                time.sleep(0.5)
            yield port
        finally:
            child.send_signal(signal.SIGINT)


def _answers(port: int) -> bool:
    try:
        _ask_of_asset(port, PAGE[0])
    except OSError:
        return False
    return True


def _seconds_to_open(port: int) -> float:
    """Send all queries of a page at once, and wait for every answer."""
    started = time.monotonic()
    with ThreadPoolExecutor(len(PAGE)) as threads:
        list(threads.map(lambda query: _ask_of_asset(port, query), PAGE))
    return round(time.monotonic() - started, 2)


def _ask_of_asset(port: int, query: str) -> None:
    answer = ask(port, query, key={"path": ASSET})
    if not all(answer.values()):
        raise RuntimeError(f"the webserver knows no such asset: {answer}")


def ask(port: int, query: str, **variables: Any) -> Any:
    """Send a query to the webserver and return its data. Raises RuntimeError for a query that is refused."""
    body = json.dumps({"query": query, "variables": variables}).encode()
    asked = urllib.request.Request(f"http://localhost:{port}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=TIMEOUT_SECONDS) as answered:
        answer = json.load(answered)
    if "errors" in answer:
        raise RuntimeError(f"the webserver refused a query: {answer}")
    return answer["data"]
