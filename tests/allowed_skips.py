"""Allowed skips: why a test may be skipped, and where. Any other skip fails, so that no test is left out for ever.

`tests/conftest.py` takes the two hooks from here. A reason is allowed only where its condition holds on this machine: a skip
for want of a library is an error in `.venv`, which has the extra `dev`, and none with another Python (`RUN=python3`).
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support.paths import ROOT

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@dataclass(frozen=True)
class AllowedSkip:
    """A reason for a skip (the whole of it, as a pattern), where it may be given, and why that is no loss."""

    reason: str
    applies: Callable[[], bool]
    why: str


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def postgres_is_installed() -> bool:
    """Return whether a server is here: on the path, as Debian's package, or as a wheel."""
    from tests.deploy.postgres_server import postgres_programs

    return postgres_programs() is not None


def _is_own_environment() -> bool:
    """Return whether this is `.venv`, which `make` installs with the extra `dev`."""
    return Path(sys.prefix) == ROOT / ".venv"


ALLOWED_SKIPS = (
    AllowedSkip("no CUDA device", lambda: not _has_gpu(), "`make test-gpu` runs it on a machine with a GPU"),
    AllowedSkip("a CUDA device is here|this machine has a GPU", _has_gpu, "it tests what happens without a GPU"),
    AllowedSkip(
        "a kernel: it runs in the interpreter",
        lambda: os.environ.get("TRITON_INTERPRET") != "1",
        "a process of its own runs these tests in Triton's interpreter",
    ),
    AllowedSkip(
        "a peer is here", lambda: any(map(find_spec, ("mamba_ssm", "fla"))), "it tests what a row says without the peer"
    ),
    AllowedSkip("only root becomes another user", lambda: os.getuid() != 0, "the other users are tested by others"),
    AllowedSkip("root reads everything", lambda: os.geteuid() == 0, "no file is closed to root"),
    AllowedSkip(
        "no C\\+\\+ compiler is installed",
        lambda: not any(map(shutil.which, ("c++", "g++", "clang++"))),
        "the check of compilation is optional",
    ),
    AllowedSkip("no sandbox that holds the compiler", lambda: True, "a compiler outside of the folders of a system"),
    AllowedSkip("the kernel grants no sandbox: .*", lambda: True, "namespaces are refused here; nothing runs without"),
    AllowedSkip(
        "Triton or its ptxas is not installed", lambda: True, "Triton's wheel has it, builds of others may not"
    ),
    AllowedSkip(
        "(transformers|megatron-core|mlcroissant|spdx-tools|wandb|mlflow) is not installed",
        lambda: True,
        "`make consumers` makes an environment for each and runs it there",
    ),
    AllowedSkip(
        "ray is not installed", lambda: find_spec("ray") is None, "`make cluster-tests` installs it and runs it there"
    ),
    AllowedSkip(
        "(dagster-postgres|PostgreSQL) is not installed",
        lambda: find_spec("dagster_postgres") is None or not postgres_is_installed(),
        "`make cluster-tests` installs both and runs it there",
    ),
    AllowedSkip("minio is not installed", lambda: shutil.which("minio") is None, "moto's server is in its place"),
    AllowedSkip(
        "(obstore|moto) is not installed",
        lambda: not all(map(find_spec, ("obstore", "moto"))),
        "`make cluster-tests` installs them and runs it there",
    ),
    AllowedSkip(
        "(datasets|torchdata|libclang) is not installed|the extra `compiler` is not installed: .*|needs a built store, .*",
        lambda: not _is_own_environment(),
        "`.venv` has them; a machine with a GPU runs the trainer without the pipeline's libraries",
    ),
)


def problem_of(reason: str) -> str:
    """Return what is wrong with a skip for this reason; nothing if it is on the list and applies here."""
    found = [skip for skip in ALLOWED_SKIPS if re.fullmatch(skip.reason, reason, re.DOTALL)]
    if any(skip.applies() for skip in found):
        return ""
    expected = "it is on the list, but does not apply here" if found else "it is not on the list"
    return (
        f'skipped: "{reason}". A skip is allowed for a reason of tests/allowed_skips.py alone: {expected}. '
        "Install what is missing (pip install -c constraints.txt -e .[dev]), or add the reason with its condition."
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that is skipped for another reason."""
    return _judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a file that is skipped for another reason."""
    return _judged((yield))


def _judged(report: Report) -> Report:
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        problem = problem_of(report.longrepr[2].removeprefix("Skipped: "))
        if problem:
            report.outcome, report.longrepr = "failed", problem
    return report
