"""Gates as Dagster shows them: a gate is a check spec, a verdict is a check result."""

from typing import Any

import dagster as dg

from pipeline.contracts.gates import Gate, Verdict, gates_of


def check_specs(stage: str, key: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """The check of every gate of a stage, riding on the stage's asset."""
    return [_spec(gate, key) for gate in gates_of(stage)]


def check_result(verdict: Verdict, key: dg.AssetKey, cause: str = "") -> dg.AssetCheckResult:
    """What a gate decided, with its measure and limit and, where it failed, what is known of the cause."""
    severity = dg.AssetCheckSeverity.ERROR if verdict.blocking else dg.AssetCheckSeverity.WARN
    metadata: dict[str, Any] = {
        "measure": verdict.measure,
        "measured": verdict.measured,
        "must be": f"{verdict.comparison} {verdict.limit:g}",
        "limit": verdict.limit,
    }
    if cause and not verdict.passed:
        metadata["cause"] = cause
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=verdict.gate,
        passed=verdict.passed,
        severity=severity,
        metadata=metadata,
        description=verdict.sentence,
    )


def _spec(gate: Gate, key: dg.AssetKey) -> dg.AssetCheckSpec:
    limit = f"`{gate.limit}` of the form" if isinstance(gate.limit, str) else f"{gate.limit:g}"
    text = f"{gate.why} Passes where `{gate.measure}` is {gate.comparison} {limit}."
    return dg.AssetCheckSpec(gate.name, asset=key, blocking=gate.blocking, description=text)
