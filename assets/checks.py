"""Asset checks: the check spec of each gate, the check result of each verdict, and what a run planned and did not reach.

Dagster shows all that a run planned and did not reach as failed or skipped, in place of what was judged last. The event log takes
such plans back where it stores the end of a run: whoever reports it, also for a worker that was killed.
"""

import logging
from collections.abc import Mapping
from typing import Any

import dagster as dg
from dagster._core.events import AssetMaterializationPlannedData
from dagster._core.instance import RUNLESS_JOB_NAME, RUNLESS_RUN_ID
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster._core.storage.base_storage import DagsterStorage
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable

from assets.keys import op_name
from pipeline.contracts.gates import Gate, GateVerdict, gates_of

_LOG = logging.getLogger(__name__)


def check_specs(stage: str, key: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """Return the check spec of every gate of a stage, on the asset of the stage."""
    return [_spec(gate, key) for gate in gates_of(stage)]


def check_result(verdict: GateVerdict, key: dg.AssetKey, cause: Mapping[str, Any]) -> dg.AssetCheckResult:
    """Return the result of a gate with its measure and limit and, if it blocked its stage, the known cause."""
    severity = dg.AssetCheckSeverity.ERROR if verdict.blocking else dg.AssetCheckSeverity.WARN
    metadata: dict[str, Any] = {
        "measure": verdict.measure,
        "measured": verdict.measured,
        "must be": f"{verdict.comparison} {verdict.limit:g}",
        "limit": verdict.limit,
    }
    if verdict.blocking and not verdict.passed:
        metadata |= cause
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=verdict.gate,
        passed=verdict.passed,
        severity=severity,
        metadata=metadata,
        description=verdict.sentence,
    )


def taking_plans_back(storage: DagsterStorage) -> DagsterStorage:
    """Return a storage whose event log takes back what a run planned, where it stores that the run failed or was canceled."""
    events: Any = storage.event_log_storage
    store = events.store_event

    def store_event(event: dg.EventLogEntry) -> None:
        store(event)
        if event.dagster_event_type in (dg.DagsterEventType.RUN_FAILURE, dg.DagsterEventType.RUN_CANCELED):
            try:
                _take_plans_back(events, event.run_id)
            except Exception as error:  # whatever its database raises: what checks show is less than the end of the run
                _LOG.warning("run %s: what it planned is still shown as planned: %s", event.run_id, error)

    events.store_event = store_event
    return storage


def report_unplanned(instance: dg.DagsterInstance, key: dg.AssetKey) -> None:
    """Report an asset as planned by no run, so that it shows what it showed before the run that planned it last."""
    planned = AssetMaterializationPlannedData(key)
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED.value
    instance.report_dagster_event(dg.DagsterEvent(kind, RUNLESS_JOB_NAME, event_specific_data=planned), RUNLESS_RUN_ID)


def _take_plans_back(log: Any, run_id: str) -> None:
    """Take back what a run planned: of assets that it did not begin, and of checks that it did not judge."""
    kinds = dg.DagsterEventType
    wanted = {kinds.ASSET_MATERIALIZATION_PLANNED, kinds.STEP_START}
    events = [each.event_log_entry.dagster_event for each in log.get_records_for_run(run_id, of_type=wanted).records]
    begun = {event.step_key for event in events if event.event_type is kinds.STEP_START}
    for planned in (event for event in events if event.event_type is not kinds.STEP_START):
        if op_name(planned.asset_key) not in begun:
            report_unplanned(log._instance, planned.asset_key)
    columns, plan = AssetCheckExecutionsTable.c, AssetCheckExecutionRecordStatus.PLANNED.value
    not_judged = (columns.run_id == run_id, columns.execution_status == plan)
    with log.index_connection() as connection:
        connection.execute(AssetCheckExecutionsTable.delete().where(*not_judged))


def _spec(gate: Gate, key: dg.AssetKey) -> dg.AssetCheckSpec:
    value = gate.limit.value
    limit = f"`{value}` of the config" if isinstance(value, str) else f"{value:g}"
    text = f"{gate.why} Passes if `{gate.measure}` is {gate.limit.comparison} {limit}."
    return dg.AssetCheckSpec(gate.name, asset=key, blocking=gate.blocking, description=text)
