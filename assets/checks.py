"""Asset checks: the check spec of each gate, and the check result of each verdict."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from pipeline.contracts.gates import Gate, GateVerdict, gates_of


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


def _spec(gate: Gate, key: dg.AssetKey) -> dg.AssetCheckSpec:
    value = gate.limit.value
    limit = f"`{value}` of the config" if isinstance(value, str) else f"{value:g}"
    text = f"{gate.why} Passes if `{gate.measure}` is {gate.limit.comparison} {limit}."
    return dg.AssetCheckSpec(gate.name, asset=key, blocking=gate.blocking, description=text)
