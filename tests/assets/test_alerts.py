"""Alerts go to a command as JSON; changed pins ask for one build, and unchanged ones for none."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.events import EngineEventData
from dagster._utils import get_run_crash_explanation
from dagster_shared.error import SerializableErrorInfo

from assets.alerts import ALERT, pins_digest, send_alert, sensors
from assets.definitions import defs
from pipeline.core.errors import ParamsError
from pipeline.pins.corpora import Corpus

AlertAfter = Callable[[Callable[[], object]], str]


def test_an_alert_is_one_line_of_json_for_the_command(tmp_path: Path) -> None:
    said = tmp_path / "said"
    program = tmp_path / "alert.py"
    program.write_text(f"import sys; open({str(said)!r}, 'w').write(sys.stdin.read())")
    send_alert({"run": "a", "error": 'what "failed"'}, f"{sys.executable} {program}")

    assert json.loads(said.read_text()) == {"run": "a", "error": 'what "failed"'}


def test_alerts_run_where_a_command_is_given() -> None:
    corpora = [Corpus(name="tiny", recipe="tiny")]

    assert sensors(corpora, {})[0].default_status is dg.DefaultSensorStatus.STOPPED
    assert sensors(corpora, {ALERT: "mail"})[0].default_status is dg.DefaultSensorStatus.RUNNING


def test_an_alert_whose_command_fails_is_sent_again(
    in_memory: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, program = tmp_path / "said", tmp_path / "alert.py"
    program.write_text(f"import sys; open({str(said)!r}, 'a').write(sys.stdin.read())")
    sensor = sensors([], {})[0]
    context = dg.build_sensor_context(instance=in_memory)

    def fail() -> str:
        run = in_memory.create_run_for_job(defs.resolve_job_def("build"))
        in_memory.report_run_failed(run, "a test")
        return run.run_id

    fail()
    monkeypatch.setenv(ALERT, "cat >> file")
    sensor(context)
    runs = [fail(), fail()]
    assert "sent again" in str(sensor(context))
    monkeypatch.setenv(ALERT, f"{sys.executable} {program}")
    assert [str(sensor(context)), str(sensor(context))] == [
        str(dg.SkipReason(f"alerts sent: {number}")) for number in (2, 0)
    ]
    assert [json.loads(line)["run"] for line in said.read_text().splitlines()] == runs


@pytest.fixture
def alert_after(in_memory: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AlertAfter:
    """Return a function that lets a run fail and returns the error of its alert."""
    said, program = tmp_path / "said", tmp_path / "alert.py"
    program.write_text(f"import sys; open({str(said)!r}, 'w').write(sys.stdin.read())")
    sensor, context = sensors([], {})[0], dg.build_sensor_context(instance=in_memory)

    def alerted(fail: Callable[[], object]) -> str:
        sensor(context)
        fail()
        monkeypatch.setenv(ALERT, f"{sys.executable} {program}")
        sensor(context)
        return str(json.loads(said.read_text())["error"])

    return alerted


def test_an_alert_tells_what_failed_a_step_that_is_no_gate(
    in_memory: dg.DagsterInstance, alert_after: AlertAfter
) -> None:
    @dg.op
    def divide() -> None:
        try:
            raise ZeroDivisionError("planted before")
        except ZeroDivisionError as error:
            raise RuntimeError("it failed") from error

    @dg.job
    def fails() -> None:
        divide()

    error = alert_after(lambda: fails.execute_in_process(instance=in_memory, raise_on_error=False))
    assert error == "ZeroDivisionError: planted before"


def test_an_alert_tells_the_defect_of_a_run_that_no_step_of_it_has_begun(
    in_memory: dg.DagsterInstance, root: Path, alert_after: AlertAfter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sweep(instance: dg.DagsterInstance) -> list[str]:
        raise KeyError("planted")

    monkeypatch.setattr("assets.resources.sweep", sweep)
    job = defs.resolve_job_def("build_tiny")
    error = alert_after(lambda: job.execute_in_process(instance=in_memory, raise_on_error=False))
    assert error.startswith("the start of the run raised KeyError: 'planted' (test_")


@pytest.mark.parametrize(
    ("process", "code", "how"),
    [
        ("Run execution process", -9, "was terminated by signal 9 (SIGKILL)."),
        ("[DagsterApiServer] Run execution process", 3, "unexpectedly exited with code 3."),
    ],
)
def test_an_alert_of_a_run_whose_process_ended_says_so_and_what_to_do(
    in_memory: dg.DagsterInstance, alert_after: AlertAfter, process: str, code: int, how: str
) -> None:
    run = in_memory.create_run_for_job(defs.resolve_job_def("build"))
    # As Dagster's code server does where the process of a run has ended.
    noted = get_run_crash_explanation(f"{process} for {run.run_id}", exit_code=code)
    in_memory.report_engine_event(noted, run)
    error = alert_after(lambda: in_memory.report_run_failed(run))

    assert error.startswith(f"Run execution process for {run.run_id} {how} Run again: ")
    assert "steps of a training" in error


def test_an_alert_of_a_run_whose_definitions_could_not_be_loaded_tells_why(
    in_memory: dg.DagsterInstance, alert_after: AlertAfter
) -> None:
    run = in_memory.create_run_for_job(defs.resolve_job_def("build"))
    syntax = SerializableErrorInfo("tomllib.TOMLDecodeError: at line 11\n", [], "TOMLDecodeError")
    inner = SerializableErrorInfo("PinError: corpora.toml: recipe is 'quikc'\n", [], "PinError", cause=syntax)
    error = SerializableErrorInfo(
        "DagsterUserCodeLoadError: of the code\n", [], "DagsterUserCodeLoadError", cause=inner
    )
    in_memory.report_engine_event("Could not load job definition.", run, EngineEventData(error=error))
    noted = get_run_crash_explanation(f"[DagsterApiServer] Run execution process for {run.run_id}", exit_code=1)
    in_memory.report_engine_event(noted, run)

    assert alert_after(lambda: in_memory.report_run_failed(run)) == "PinError: corpora.toml: recipe is 'quikc'"


def test_an_alert_that_is_no_command_line_is_refused_when_definitions_load() -> None:
    with pytest.raises(ParamsError, match=r"SLUICE_ALERT: .*No closing quotation; expected a command line"):
        sensors([], {ALERT: "mail 'me"})


def test_changed_pins_ask_for_a_build_once(tmp_path: Path) -> None:
    pins = tmp_path / "pins.toml"
    pins.write_text("one")
    corpus = Corpus(name="tiny", recipe="tiny", pins=pins)
    _, sensor = sensors([corpus], {})
    context = dg.build_sensor_context(cursor=None)

    assert isinstance(sensor(context), dg.SkipReason), "the first look only remembers"
    assert isinstance(sensor(context), dg.SkipReason)
    (tmp_path / "decisions.toml").write_text("a decision")
    request = sensor(context)
    assert isinstance(request, dg.RunRequest)
    assert request.run_key == f"tiny-1-{pins_digest(corpus)}"
    assert isinstance(sensor(context), dg.SkipReason)


def test_pins_that_change_back_and_forth_ask_for_a_build_each_time(tmp_path: Path) -> None:
    pins = tmp_path / "pins.toml"
    _, sensor = sensors([Corpus(name="tiny", recipe="tiny", pins=pins)], {})
    context, keys = dg.build_sensor_context(cursor=None), []
    for text in ("one", "two", "one", "two", "one"):
        pins.write_text(text)
        keys.append(getattr(sensor(context), "run_key", None))

    assert keys[0] is None
    assert len(set(keys)) == len(keys), "Dagster launches a key once: the build of what came before would be left out"


def test_a_cursor_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    corpus = Corpus(name="tiny", recipe="tiny", pins=tmp_path / "pins.toml")
    _, sensor = sensors([corpus], {})
    assert isinstance(sensor(dg.build_sensor_context(cursor=pins_digest(corpus))), dg.SkipReason)
    assert isinstance(sensor(dg.build_sensor_context(cursor="another")), dg.RunRequest)


def test_a_recipe_of_its_own_that_changes_asks_for_a_build_too(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    found = []
    for row_length in (64, 128):
        recipe.write_text(f'base = "tiny"\ntokenize.row_length = {row_length}\n')
        found += [pins_digest(Corpus(name="mine", recipe=str(recipe), set=given)) for given in ({}, {"held_out": []})]

    assert len(set(found)) == 4
