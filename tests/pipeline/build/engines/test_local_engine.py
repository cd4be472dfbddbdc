"""Processes of this machine end with their parent, and at once with the keyboard."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from multiprocessing import forkserver
from pathlib import Path

import pytest

from pipeline.build.engines.local_engine import LocalEngine
from pipeline.contracts.stage_report import StageReport
from pipeline.core.errors import SourceError
from pipeline.store.store import Store
from tests.pipeline.build.engines.part_functions import tasks


def test_what_waited_when_a_worker_died_is_made_by_all_workers(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    drain, sizes = LocalEngine._drain, []
    monkeypatch.setattr(LocalEngine, "_drain", lambda engine, some: sizes.append(len(some)) or drain(engine, some))
    with LocalEngine(2) as engine:
        made = [replace(task, is_of_source=True) for task in tasks(store, "die_at_one", 12)]
        results = {task.part.name: result for task, result in engine.run(made)}

    assert isinstance(results.pop("1"), SourceError)
    assert len(results) == 11
    assert sizes[0] == 12
    assert 1 <= sizes.count(1) <= 3 < sizes[-1]


def test_parts_are_made_though_the_process_that_starts_workers_dies(store: Store) -> None:
    with LocalEngine(2) as engine:
        engine._started_pool()
        server = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
        os.kill(server, signal.SIGSTOP)  # it answers no more: the first worker is waited for
        killer = threading.Timer(0.3, os.kill, (server, signal.SIGKILL))
        killer.start()
        results = [result for _, result in engine.run(tasks(store, "number", 3))]
        killer.join()

    assert [type(result) for result in results] == [StageReport] * 3


def test_what_waits_for_another_program_is_made_beside_a_single_source_without_workers(store: Store) -> None:
    one, *others = tasks(store, "meet", 3)
    with LocalEngine(2) as engine:
        made = [replace(one, is_of_source=True), *(replace(task, is_of_source=True, waits=True) for task in others)]
        results = [result for _, result in engine.run(made)]

        assert engine._pool is None
    assert [type(result) for result in results] == [StageReport] * 3


def test_workers_die_with_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import sys; from pathlib import Path\n"
        "from pipeline.build.engines.local_engine import LocalEngine; from pipeline.store.store import Store\n"
        "from tests.pipeline.build.engines.part_functions import tasks\n"
        "if __name__ == '__main__':\n"
        "    with LocalEngine(2) as engine:\n"
        "        engine._started_pool(); print(engine._pool.submit(int).result(), flush=True)\n"
        "        print(*engine._pool._processes, flush=True); list(engine.run(tasks(Store(Path(sys.argv[1])), 'hang')))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    parent = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert parent.stdout is not None
    parent.stdout.readline()
    workers = [int(word) for word in parent.stdout.readline().split()]
    parent.kill()
    parent.wait()

    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert workers
    assert [worker for worker in workers if Path(f"/proc/{worker}").exists()] == []


def test_the_keyboard_stops_the_parent_alone_and_at_once(tmp_path: Path) -> None:
    code = (
        "import signal, sys; from pathlib import Path; from pipeline.store.store import Store\n"
        "from pipeline.build.engines.local_engine import LocalEngine\n"
        "from tests.pipeline.build.engines.part_functions import tasks\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell has ignored of what it runs beside itself\n"
        "with LocalEngine(2) as engine:\n"
        "    print('started', flush=True); list(engine.run(tasks(Store(Path(sys.argv[1])), 'hang')))"
    )
    line = [sys.executable, "-c", code, str(tmp_path / "store")]
    began = tmp_path / "began"
    began.mkdir()
    child = subprocess.Popen(
        line,
        env={**os.environ, "BEGAN": str(began)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while len(list(began.iterdir())) < 2 and time.monotonic() < deadline:  # both workers
        time.sleep(0.05)
    started = time.monotonic()
    os.killpg(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=25)

    assert time.monotonic() - started < 15  # the parts would hang for 30 seconds
    assert errors.count("Traceback") == 1  # the parent's own; no worker printed one
