"""Output to a stream that is not a terminal: whole lines, few of them, and the last one always."""

import io

from pipeline.cli.console import UpdatingLine, person


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
