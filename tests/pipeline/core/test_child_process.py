"""A child process ends with all that it has started: when it ends, and at its deadline."""

import subprocess
import time
from pathlib import Path

import pytest

from pipeline.core.child_process import run_child

GRANDCHILD = "(sleep 1; touch {}) >/dev/null 2>&1 &"


def test_what_a_command_prints_comes_back_with_its_exit_code() -> None:
    done = run_child(["sh", "-c", "echo out; echo err >&2; exit 3"], 20, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    assert (done.exit_code, done.stdout, done.stderr) == (3, b"out\n", b"err\n")


@pytest.mark.parametrize(("ends", "seconds"), [("exit 0", 20), ("sleep 20", 0.2)], ids=["ended", "late"])
def test_no_grandchild_outlives_the_call(tmp_path: Path, ends: str, seconds: float) -> None:
    done = run_child(["sh", "-c", f"{GRANDCHILD.format(tmp_path / 'late')} {ends}"], seconds)
    time.sleep(1.5)

    assert (done.exit_code is None) == (ends != "exit 0")
    assert list(tmp_path.iterdir()) == []


def test_what_was_printed_before_the_deadline_comes_back() -> None:
    done = run_child(["sh", "-c", "echo begun; sleep 20"], 0.5, stdout=subprocess.PIPE, text=True)

    assert (done.exit_code, done.stdout) == (None, "begun\n")
