"""Output to a stream that is not a terminal: whole lines, few of them, and the last one always."""

import io

import pytest

from pipeline.build.run_stage import StageResult
from pipeline.cli.console import FittedTable, UpdatingLine, person, waterfall_table
from pipeline.contracts.stage_report import StageReport


def test_a_long_line_is_never_cut_in_two() -> None:
    stream = io.StringIO()
    command = "python -m pipeline build " + "--pins " * 40

    person(stream).print(command)

    assert stream.getvalue() == command + "\n"


def test_a_line_that_is_written_over_leaves_its_last_state() -> None:
    stream = io.StringIO()
    with UpdatingLine(person(stream)) as line:
        line.say("run tiny, from the start")
        for step in range(1, 21):
            line.update(f"train {step}/20")

    assert stream.getvalue().splitlines() == ["run tiny, from the start", "train 20/20"]


def test_a_second_session_does_not_repeat_the_line_of_the_first() -> None:
    stream = io.StringIO()
    line = UpdatingLine(person(stream))
    with line:
        line.update("train 10/10")
    with line:
        line.say("unchanged")

    assert stream.getvalue().splitlines() == ["train 10/10", "unchanged"]


def test_the_waterfall_says_which_files_that_go_out_become_no_documents() -> None:
    stream = io.StringIO()
    collected = StageReport(12, 11, {"other_language": 1}, 130, 120, {"num_evidence_files": 3, "source_bytes": 90})
    results = [
        StageResult("collect", "a" * 64, collected, (), {}, False),
        StageResult("normalize", "b" * 64, StageReport(8, 8, {}, 90, 90), (), {}, False),
    ]
    person(stream).print(waterfall_table(results))

    first, second = (line for line in stream.getvalue().splitlines() if "collect" in line or "normalize" in line)
    assert "other_language 1 (3 of those out are license evidence, no documents)" in first
    assert "evidence" not in second


ROWS = [{"gate": "special_spellings_stay_text", "path": f"vendored/{'folder/' * 12}file.c", "number": 3}]


@pytest.mark.parametrize("width", [None, 80, 200], ids=["pipe", "narrow", "wide"])
def test_a_table_cuts_no_name(width: int | None) -> None:
    stream = io.StringIO()
    console = person(stream)
    if width is not None:
        console.width = width
    console.answer(FittedTable("Gates", ROWS))

    assert all(str(value) in stream.getvalue() for value in ROWS[0].values())


def test_a_pipe_gets_no_blanks_at_the_ends_of_lines_and_no_table_that_is_too_wide_to_read() -> None:
    stream = io.StringIO()
    console = person(stream)
    console.print(
        FittedTable("Short", [{"gate": "a", "by": "b"}]),
        FittedTable("Long", [{"gate": "a", "by": ("c" * 90, "d" * 90, "e" * 200)}]),
    )
    lines = stream.getvalue().splitlines()

    assert [line for line in lines if line != line.rstrip()] == []
    assert lines[-5:-1] == ["  gate  a", f"  by    {'c' * 90},", f"        {'d' * 90},", f"        {'e' * 200}"]


def test_answers_and_words_go_to_streams_of_their_own() -> None:
    words, answers = io.StringIO(), io.StringIO()
    for is_quiet in (False, True):
        console = person(words, answers, is_quiet)
        console.print("waiting")
        console.answer("live")

    assert (words.getvalue(), answers.getvalue()) == ("waiting\n", "live\nlive\n")
