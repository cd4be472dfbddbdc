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

from assets.instance import CORPUS_TAG, address_of_ui
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


def _alerts(is_running: bool) -> dg.SensorDefinition:
    status = dg.DefaultSensorStatus.RUNNING if is_running else dg.DefaultSensorStatus.STOPPED
    text = f"Gives each run that failed to the command in {ALERT}, as JSON."

    @dg.run_failure_sensor(name="alerts", default_status=status, description=text)
    def alerts(context: dg.RunFailureSensorContext) -> None:
        run = context.dagster_run
        data = getattr(context.failure_event.event_specific_data, "first_step_failure_event", None)
        failed = getattr(data, "event_specific_data", None)
        described = getattr(getattr(failed, "user_failure_data", None), "description", None)
        alert = {
            "run": run.run_id,
            "job": run.job_name,
            "corpus": run.tags.get(CORPUS_TAG, ""),
            "error": described or context.failure_event.message,
            "address": f"{address_of_ui()}/runs/{run.run_id}",
        }
        send_alert(alert, os.environ.get(ALERT, ""))

    return alerts


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
        before, _ = context.cursor, context.update_cursor(found)
        if before in (None, found):
            return dg.SkipReason("the files of pins and decisions are as they were")
        return dg.RunRequest(run_key=f"{corpus.name}-{found}")

    return changed_pins


def pins_digest(corpus: Corpus) -> str:
    """Return a digest of what decides a corpus: its files of pins and of decisions, and its recipe if that is its own."""
    recipe = corpus_recipe(corpus)
    pins = pins_file_of(recipe)
    files = (pins, corpus.decisions or pins.with_name(DECISIONS_FILE))
    own = [digest(recipe_values(recipe))] if corpus.set or names_file(corpus.recipe) else []
    return digest([*(file_sha256(file) if file.exists() else None for file in files), *own])
