"""Tests marked quick: whatever starts a process or a training session fails them, also in a thread or behind an `except`."""

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import quick

SPAWN = multiprocessing.get_context("spawn")


def _begin_session() -> None:
    from trainer.train.metrics import hold_folder

    with hold_folder(Path(os.environ["PYTEST_RUN"]), "a test"):
        pass


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (lambda: subprocess.run(["true"], check=False), "subprocess.Popen"),
        (lambda: os.system("true"), "os.system"),
        (os.fork, "os.fork"),
        (lambda: SPAWN.Process(target=print).start(), "os.posix_spawn"),
        (_begin_session, "begins a training session"),
    ],
)
def test_what_starts_something_fails_the_quick_test_that_runs(
    start: Callable[[], Any], what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(quick, "_current", ["tests/test_one.py::test_it"])
    monkeypatch.setattr(quick, "_started", [])
    monkeypatch.setenv("PYTEST_RUN", str(tmp_path))

    with pytest.raises(pytest.fail.Exception, match=f"test_it.*{what}.*NOT_QUICK"):
        start()


@pytest.mark.parametrize(
    ("is_quick", "is_older", "fails"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_a_thread_that_starts_a_process_fails_the_quick_test_that_has_started_it(
    is_quick: bool, is_older: bool, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "_current", [])
    monkeypatch.setattr(quick, "_started", [])
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    item = SimpleNamespace(nodeid="test_it", get_closest_marker=lambda name: is_quick and name == "quick")
    phase, is_time = quick.pytest_runtest_call(item), threading.Event()
    thread = threading.Thread(target=lambda: is_time.wait(10) and sys.audit("os.fork"))
    if is_older:
        thread.start()
    next(phase)
    if not is_older:
        thread.start()
    is_time.set()
    thread.join()

    with pytest.raises(pytest.fail.Exception if fails else StopIteration):
        phase.send(None)
