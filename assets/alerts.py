"""Sensors that tell people and machines: alerts of runs that failed, and builds of corpora whose pins changed.

The sensors run while a daemon does. SLUICE_ALERT is a command line that gets an alert as one line of JSON on its standard input:

    SLUICE_ALERT="mail -s Sluice me@example.org" make dev
"""

import json
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
from dagster._core.event_api import RunStatusChangeRecordsFilter

from assets.instance import CORPUS_TAG, GO_ON, address_of_ui, cause_of_failure
from assets.keys import job_name
from pipeline.build.recipes import corpus_recipe, pins_file_of, recipe_values
from pipeline.core.digests import file_sha256
from pipeline.core.errors import ParamsError
from pipeline.core.params import digest
from pipeline.core.settings.recipe_files import names_file
from pipeline.pins.corpora import Corpus
from pipeline.pins.decisions import DECISIONS_FILE

ALERT = "SLUICE_ALERT"
TIMEOUT_SECONDS = 30.0
_MAX_NOTED = 10
_MAX_ALERTS = 20
"""Alerts of one evaluation of the sensor."""


def sensors(corpora: Sequence[Corpus], variables: Mapping[str, str]) -> list[dg.SensorDefinition]:
    """Build the sensor of alerts, which runs where a command is given, and those of changed pins, which somebody starts.

    Raises ParamsError for a command line that is none.
    """
    command = variables.get(ALERT, "")
    try:
        shlex.split(command)
    except ValueError as error:  # now, rather than at the first run that fails
        raise ParamsError(ALERT, f"{command!r}: {error}", "a command line of a shell", "Correct its quotes.") from None
    return [_alerts(bool(command)), *(_changed_pins(corpus, corpora) for corpus in corpora)]


def send_alert(alert: Mapping[str, Any], command: str) -> None:
    """Run a command with an alert as JSON on its standard input. Raises CalledProcessError or TimeoutExpired."""
    line = json.dumps(dict(alert), sort_keys=True) + "\n"
    subprocess.run(shlex.split(command), input=line, text=True, check=True, timeout=TIMEOUT_SECONDS)


def unsent(instance: dg.DagsterInstance, cursor: int, limit: int) -> list[dg.EventLogRecord]:
    """Return the events of runs that failed after the event of that number, the oldest first."""
    failed = RunStatusChangeRecordsFilter(dg.DagsterEventType.RUN_FAILURE, after_storage_id=cursor)
    return [*instance.fetch_run_status_changes(failed, limit, ascending=True).records]


def _alerts(is_running: bool) -> dg.SensorDefinition:
    status = dg.DefaultSensorStatus.RUNNING if is_running else dg.DefaultSensorStatus.STOPPED
    text = f"Gives each run that failed to the command in {ALERT}, as JSON."

    @dg.sensor(name="alerts", minimum_interval_seconds=30, default_status=status, description=text)
    def alerts(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        if context.cursor is None:  # what failed before somebody asked for alerts is no news
            latest = context.instance.fetch_run_status_changes(dg.DagsterEventType.RUN_FAILURE, 1).records
            context.update_cursor(str(latest[0].storage_id if latest else 0))
        sent = 0
        for record in unsent(context.instance, int(context.cursor or 0), _MAX_ALERTS):
            try:
                send_alert(_alert(context.instance, record), os.environ.get(ALERT, ""))
            except (OSError, subprocess.SubprocessError, IndexError) as error:
                found = f"{ALERT} failed, which no shell runs: {error}"
                return dg.SkipReason(f"{found}. Correct it; this alert and those after it are sent again.")
            context.update_cursor(str(record.storage_id))
            sent += 1
        return dg.SkipReason(f"alerts sent: {sent}")

    return alerts


def _alert(instance: dg.DagsterInstance, record: dg.EventLogRecord) -> dict[str, Any]:
    """Return what is told of a run that failed."""
    entry = record.event_log_entry
    run, event = instance.get_run_by_id(entry.run_id), entry.dagster_event
    data = event and event.event_specific_data
    failed_step = getattr(data, "first_step_failure_event", None)
    cause = cause_of_failure(failed_step.event_specific_data if failed_step else data)
    return {
        "run": entry.run_id,
        "job": run.job_name if run else "",
        "corpus": run.tags.get(CORPUS_TAG, "") if run else "",
        "error": cause or _words_of_dagster(instance, entry.run_id) or (event.message if event else ""),
        "address": f"{address_of_ui()}/runs/{entry.run_id}",
    }


def _words_of_dagster(instance: dg.DagsterInstance, run_id: str) -> str:
    """Return what Dagster itself noted of a run whose process ended: an error before its first step, such as of a list of corpora
    that cannot be loaded, or how it ended, such as killed. Its failure says nothing.
    """
    kinds = {dg.DagsterEventType.ENGINE_EVENT}
    noted = instance.get_records_for_run(run_id, of_type=kinds, limit=_MAX_NOTED, ascending=False).records
    events = [event for record in noted if (event := record.event_log_entry.dagster_event) is not None]
    if cause := next(filter(None, (cause_of_failure(event.event_specific_data) for event in events)), ""):
        return cause
    said = ((event.message or "").removeprefix("[DagsterApiServer] ") for event in events)
    found = next((each for each in said if each.startswith("Run execution process")), "")
    if not found:
        return ""
    return f"{found.partition(' This usually ')[0]} {GO_ON} Fewer workers of a build need less memory."


def _changed_pins(corpus: Corpus, corpora: Sequence[Corpus]) -> dg.SensorDefinition:
    job = job_name("build", corpus.name, corpora)

    @dg.sensor(
        name=f"{job}_on_changed_pins",
        job_name=job,
        minimum_interval_seconds=60,
        description=f"Builds corpus {corpus.name} when its file of pins or of decisions has changed. It ends at the candidate.",
    )
    def changed_pins(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        found = pins_digest(corpus)
        changes, _, before = (context.cursor or f"0 {found}").rpartition(" ")
        number = int(changes or 0) + (before != found)
        context.update_cursor(f"{number} {found}")
        if before == found:
            return dg.SkipReason("the files of pins and decisions are as they were")
        return dg.RunRequest(run_key=f"{corpus.name}-{number}-{found}")  # a key launches once, and files may go back

    return changed_pins


def pins_digest(corpus: Corpus) -> str:
    """Return a digest of what decides a corpus: its files of pins and of decisions, and its recipe if that is its own."""
    recipe = corpus_recipe(corpus)
    pins = pins_file_of(recipe)
    files = (pins, corpus.decisions or pins.with_name(DECISIONS_FILE))
    own = [digest(recipe_values(recipe))] if corpus.set or names_file(corpus.recipe) else []
    return digest([*(file_sha256(file) if file.exists() else None for file in files), *own])
