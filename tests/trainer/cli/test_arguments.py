"""Arguments that several commands share: a store of another format is refused by each, and a policy is read back."""

import argparse
import json
import os
import sys
from pathlib import Path

import pytest

from trainer.__main__ import main
from trainer.checkpoint.retention import RetentionPolicy
from trainer.cli.arguments import add_retention, report, retention


@pytest.mark.parametrize(
    "line",
    [
        ["cache", "status"],
        ["bench", "--dry-run"],
        ["checkpoints", "list"],
    ],
    ids=" ".join,
)
def test_a_store_of_an_old_format_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: list[str]
) -> None:
    (tmp_path / "objects").mkdir()
    code = main([*line, "--json", "--store", str(tmp_path)])
    answer = json.loads(capsys.readouterr().out)

    assert (code, answer["error"]) == (1, "FormatError")
    assert "it has format 1" in answer["message"]


def test_the_arguments_of_a_retention_policy_are_read_back() -> None:
    parser = argparse.ArgumentParser()
    add_retention(parser)

    assert retention(parser.parse_args([])) == RetentionPolicy()
    options = parser.parse_args(["--keep-last", "2", "--keep-every", "10", "--keep-best", "1"])
    assert retention(options) == RetentionPolicy(last=2, every=10, best=1)


def test_lines_for_a_reader_that_has_closed_the_pipe_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        report(["the first line", "the second line"])
