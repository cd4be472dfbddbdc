"""The trainer as a child: its lines arrive, its refusal is passed on, and the error of a killed child differs from a refusal."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from assets.trainer_process import run_trainer, trainer_command
from pipeline.core.errors import TrainingError


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_lines_and_result_arrive() -> None:
    lines: list[str] = []
    code = "import sys; print('one', file=sys.stderr); print('two', file=sys.stderr); print('{\"steps\": 2}')"

    assert run_trainer(python(code), lines.append) == {"steps": 2}
    assert lines == ["one", "two"]


def test_a_refusal_is_passed_on_with_its_own_remedy(tmp_path: Path) -> None:
    command = trainer_command("train", tmp_path, "--corpus", "mine", "--out", str(tmp_path / "out"))

    with pytest.raises(TrainingError) as caught:
        run_trainer(command, lambda text: None)

    assert "snapshot live of corpus mine: there is none" in str(caught.value)
    assert str(caught.value).endswith(
        f"Run `python -m pipeline build --recipe RECIPE --corpus mine --store {tmp_path}` first."
    )


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            """print('{"message": "Report it above.", "defect": "KeyError: 1 (step.py:3)"}'); raise SystemExit(1)""",
            "the trainer: it raised KeyError: 1 (step.py:3). Its checkpoints are kept. Report it with the traceback in the log",
        ),
        (
            "import sys; print('bye', file=sys.stderr)",
            "the trainer: it ended with exit code 0: bye; expected exit code 0 and a result.",
        ),
    ],
)  # fmt: skip
def test_a_defect_of_the_trainer_is_told_as_one(code: str, message: str) -> None:
    with pytest.raises(TrainingError) as caught:
        run_trainer(python(code), lambda text: None)

    assert str(caught.value).startswith(message)


def test_a_killed_trainer_is_named_by_its_signal_and_can_be_launched_again() -> None:
    code = "import os, sys; print('train [#] 1/2', file=sys.stderr, flush=True); os.kill(os.getpid(), 9)"

    with pytest.raises(TrainingError, match=r"signal 9: train \[#\] 1/2.*Launch again to resume"):
        run_trainer(python(code), lambda text: None)


def test_the_trainer_ends_when_nobody_listens_any_more() -> None:
    marker = f"sluice-child-{time.monotonic_ns()}"
    code = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_DFL)  # as the trainer has its own\n"
        f"print('up', file=sys.stderr, flush=True); time.sleep(60)  # {marker}"
    )

    def interrupted(text: str) -> None:
        raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_trainer(python(code), interrupted)

    assert time.monotonic() - started < 30
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert marker not in listed
