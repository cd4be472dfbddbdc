"""A stage's result as metadata that a person wants: rows, drops, rates and figures a source, as tables."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from pipeline.gates import Verdict
from pipeline.stages import StageResult


def stage_metadata(result: StageResult, seconds: float) -> dict[str, Any]:
    """Metadata of a finished stage."""
    report = result.report
    metadata: dict[str, Any] = {
        "dagster/row_count": report.rows_out,
        "object_id": result.object_id,
        "rows_in": report.rows_in,
        "rows_dropped": sum(report.dropped.values()),
        "MB in": round(report.num_bytes_in / 1e6, 3),
        "MB out": round(report.num_bytes_out / 1e6, 3),
        "seconds": round(seconds, 3),
        "MB/s": round(report.num_bytes_in / 1e6 / seconds, 2) if seconds > 0 else 0.0,
        "unchanged": result.unchanged,
        "drops by reason": _table(
            [{"reason": name, "rows": count} for name, count in report.dropped.items()], "reason", "rows"
        ),
        "measures": _table([{"measure": n, "value": float(v)} for n, v in report.measures.items()], "measure", "value"),
        "sources": _source_table(result),
    }
    if result.failures:
        metadata["failed sources"] = "\n".join(str(error) for _, error in sorted(result.failures.items()))
    return metadata


def sparkline(values: Sequence[float], width: int = 240, height: int = 48) -> dg.MetadataValue[Any]:
    """A small line plot. Under 1,000 characters, so that the page shows it without a click: at most 40 points are drawn."""
    step = max(1, -(-len(values) // 40))
    points = list(values[::step])
    low, high = min(points), max(points)
    scale = (height - 4) / ((high - low) or 1.0)
    across = width / max(1, len(points) - 1)
    path = " ".join(
        f"{index * across:.0f},{height - 2 - (value - low) * scale:.0f}" for index, value in enumerate(points)
    )
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
        f'<polyline fill="none" stroke="#36c" points="{path}"/></svg>'
    )
    encoded = base64.b64encode(picture.encode()).decode()
    return dg.MetadataValue.md(f"![{values[0]:.3f} to {values[-1]:.3f}](data:image/svg+xml;base64,{encoded})")


def _source_table(result: StageResult) -> dg.MetadataValue[Any]:
    rows: list[Mapping[str, Any]] = [
        {
            "source": name,
            "rows in": report.rows_in,
            "rows out": report.rows_out,
            "MB in": round(report.num_bytes_in / 1e6, 3),
            "MB out": round(report.num_bytes_out / 1e6, 3),
        }
        for name, report in result.source_reports.items()
    ]
    return _table(rows, "source", "rows in", "rows out", "MB in", "MB out")


def _table(rows: Sequence[Mapping[str, Any]], *columns: str) -> dg.MetadataValue[Any]:
    def kind(name: str) -> str:
        return "string" if not rows or isinstance(rows[0][name], str) else "float"

    schema = dg.TableSchema(columns=[dg.TableColumn(name, kind(name)) for name in columns])
    return dg.MetadataValue.table([dg.TableRecord(dict(row)) for row in rows], schema=schema)


def verdict_rows(verdicts: Sequence[Verdict]) -> dg.MetadataValue[Any]:
    """Verdicts as a table."""
    rows = [
        {
            "stage": v.stage,
            "gate": v.gate,
            "measured": v.measured,
            "limit": v.limit,
            "verdict": "passed" if v.passed else "failed",
        }
        for v in verdicts
    ]
    return _table(rows, "stage", "gate", "measured", "limit", "verdict")
