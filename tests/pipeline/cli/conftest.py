"""The command line, run in this process against a store of the test."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli.main import main

Run = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    def call(*arguments: str) -> tuple[int, Any, str]:
        code = main([*arguments, "--store", str(tmp_path / "store"), "--json"])
        captured = capsys.readouterr()
        return code, json.loads(captured.out), " ".join(captured.err.split())

    return call
