"""Command lines: any arguments give one JSON value on stdout, the right exit code, and no traceback."""

import errno
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli.main import main
from pipeline.core.command_line import Parser, run_command, shell_command, with_options
from pipeline.core.errors import SourceError
from pipeline.store.store import Store

Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    def call(*arguments: str) -> tuple[int, Any]:
        code = main([*arguments, "--json", "--store", str(tmp_path / "store")])
        return code, json.loads(capsys.readouterr().out)

    return call


def failing(error: BaseException) -> Callable[[Any], tuple[int, Any]]:
    def handler(options: Any) -> tuple[int, Any]:
        raise error

    return handler


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (SourceError("source one", "it is broken"), 1, "source one: it is broken"),
        (OSError(errno.ENOSPC, "No space left on device", "/store/tmp/x"), 1, "/store/tmp/x: No space left"),
        (OSError(errno.EIO, "Input/output error"), 1, "here: Input/output error; expected a disk that can be read"),
        (OSError(errno.EFBIG, "File too large"), 1, "here: File too large; expected files of that size"),
        (OSError(errno.EBUSY, "Device busy", "/x"), 1, "/x: Device busy; expected no such error. Look at that path"),
        (MemoryError(), 1, "fewer workers"),
        (KeyboardInterrupt(), 130, "run again"),
    ],
)
def test_every_failure_is_one_json_value_and_a_line_for_people(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, message: str
) -> None:
    parser, logged = Parser(), []
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--store", default="here")

    assert run_command(lambda: parser, ["--json"], failing(error), logged.append) == code
    assert message in json.loads(capsys.readouterr().out)["message"]
    assert message in logged[0]


def test_a_defect_is_a_traceback_and_then_a_sentence_and_one_json_value(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_it(*given: object) -> None:
        raise KeyError("document_id")

    found = r"raised KeyError: 'document_id' \(test_command_line\.py:\d+\)\. "
    monkeypatch.setattr("pipeline.build.run_stage._refuse_stale", break_it)
    for arguments, words in (
        (
            ["build", "--recipe", "tiny"],
            f"stage collect of corpus tiny {found}Nothing .* changed\\. Report it with the tr",
        ),
        (["show", "--corpus", "mine"], f"the command, of corpus mine, {found}Report it with the traceback"),
    ):
        assert main([*arguments, "--json", "--store", str(tmp_path / "store")]) == 1
        printed = capsys.readouterr()
        answer = json.loads(printed.out)
        assert answer["error"] == "KeyError"
        assert re.match(words, answer["message"]), answer
        assert printed.err.startswith("Traceback ")
        assert printed.err.splitlines()[-1].startswith("error KeyError: ")
        monkeypatch.setattr(Store, "refs", break_it)


class _MuteError(Exception):
    def __str__(self) -> str:
        raise KeyError("words")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SystemExit(0), "SystemExit: 0 ("),
        (SystemExit(), "SystemExit ("),
        (_MuteError(), "_MuteError: without words ("),
        (BaseExceptionGroup("many", [GeneratorExit()]), "BaseExceptionGroup: many (1 sub-exception) ("),
    ],
)
def test_an_error_of_any_kind_is_a_sentence_and_no_success(
    capsys: pytest.CaptureFixture[str], error: BaseException, words: str
) -> None:
    parser = Parser()
    parser.add_argument("--json", action="store_true")

    assert run_command(lambda: parser, ["--json"], failing(error), list[str]().append) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["message"].startswith(f"the command raised {words}")
    assert answer["defect"].startswith(words)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["bogus"],
        ["build", "--workers", "0"],
        ["build", "--workers", "-3"],
        ["build", "--workers", "1000"],
        ["build", "--workers", "two"],
        ["build", "--wait", "-5"],
        ["build", "--wait", "nan"],
        ["build", "--wait", "inf"],
        ["build", "--until", "bogus"],
        ["build", "--work", "1"],
        ["show", "one", "two"],
        ["why", "source"],
        ["why", "source", "a\udcff.c"],
    ],
)
def test_wrong_usage_is_exit_code_2_and_one_json_value(run: Run, tmp_path: Path, arguments: list[str]) -> None:
    code, answer = run(*arguments)

    assert (code, answer["error"]) == (2, "UsageError")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["build", "--recipe", "tiny", "--corpus", "../x"],
        ["build", "--recipe", "tiny", "--corpus", "a\0b"],
        ["show", "--corpus", "../.."],
        ["show", "a\0b"],
        ["promote", "--to", ""],
        ["why", "a", "b", "--corpus", "../.."],
        ["pin", "My Name", "."],
        ["pin", "snapshot", "."],
        ["vocabulary", "../x"],
        ["fsck"],
    ],
)
def test_odd_values_are_refused_and_make_nothing(run: Run, tmp_path: Path, arguments: list[str]) -> None:
    code, answer = run(*arguments)

    assert code == 1
    assert answer["message"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
def test_a_reader_that_ends_early_causes_no_traceback(more: list[str]) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "pipeline", "gates", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    assert "Error" not in child.stderr.read()
    assert child.wait() == 0


def test_a_message_shows_control_characters_escaped() -> None:
    logged: list[str] = []
    error = SourceError("a\x1b[2J", "b\nc", "d\u202e")

    assert run_command(lambda: Parser(), [], failing(error), logged.append) == 1
    assert logged == [r"error SourceError: a\x1b[2J: b\nc; expected d\u202e."]


@pytest.mark.parametrize(("closed", "code"), [("stdin", 0), ("stdout", 2), ("stderr", 0)])
def test_a_stream_that_a_shell_closed_is_no_file_of_the_store(
    closed: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(sys, closed, None)

    assert run_command(Parser, [], lambda options: (0, None), logged.append) == code
    assert getattr(sys, closed) is not None
    assert [line.partition("; ")[0] for line in logged] == (["error UsageError: stdout: it is closed"] if code else [])


def test_a_command_is_quoted_for_a_shell() -> None:
    line = shell_command("pipeline why", "mine", "a b.c", corpus="mine", of="last", store="my store")
    assert line == "python -m pipeline why mine 'a b.c' --corpus mine --of last --store 'my store'"
    assert shell_command("pipeline gc") == "python -m pipeline gc"


@pytest.mark.parametrize(
    ("message", "completed"),
    [
        ("Run `python -m pipeline show`.", "Run `python -m pipeline show --corpus mine --store /s`."),
        ("`python -m pipeline show --corpus other`", "`python -m pipeline show --corpus other --store /s`"),
        ("`python -m pipeline gc --store /t`", "`python -m pipeline gc --store /t`"),
        ("`python -m pipeline build` or `python -m trainer train`", None),
        ("`python -m pipeline show --help`, `python -m pip config list`, `show`", ""),
    ],
)
def test_a_command_in_a_message_is_given_what_it_does_not_name(message: str, completed: str | None) -> None:
    both = "`python -m pipeline build --store /s` or `python -m trainer train --corpus mine --store /s`"
    assert with_options(message, "mine", "/s") == (both if completed is None else completed or message)
    assert with_options(message) == message
