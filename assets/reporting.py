"""Metadata of assets: counts and rates first, which the UI plots, then tables, ids last.

Other plots are small enough for the UI to show without a click: Markdown of less than 1,000 characters.
"""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import dagster as dg

from pipeline.build.promotion import evidence
from pipeline.build.run_stage import StageResult
from pipeline.build.stage_objects import report_of, stage_of
from pipeline.contracts.column_texts import column_texts
from pipeline.contracts.gates import GateVerdict
from pipeline.contracts.stage_report import StageReport, evidence_files
from pipeline.core.schema import arrow_schema
from pipeline.core.table_names import TOKENS
from pipeline.stages.stages import STAGES
from pipeline.store.snapshot import Snapshot
from pipeline.store.store import Store

REPORTS = "reports"
"""Folder of the pages of reports in the store, and below the address of the UI."""
_LENGTHS = """select floor(log2(greatest(len(input_ids), 1)) / 2)::int as power, count(*) as number
    from read_parquet($files) group by power order by power"""
SIGNS = {"at most": "≤", "at least": "≥"}
_MAX_POINTS = 40
_WIDTH, _HEIGHT = 240, 48
_MAX_BARS, _BAR = 8, 14
_KINDS: dict[type, str] = {str: "string", bool: "bool", int: "int", float: "float"}


def page_link(page: Path) -> dg.UrlMetadataValue:
    """Return the link to the page of a report, which counts from the UI that shows it, at whatever port."""
    return dg.MetadataValue.url(f"/{REPORTS}/{page.name}")


def stage_metadata(result: StageResult, seconds: float, corpus: str) -> dict[str, Any]:
    """Build the metadata of a finished stage. A rate is left out if nothing was made, and a table without rows."""
    report = result.report
    metadata: dict[str, Any] = {
        "dagster/row_count": report.rows_out,
        "corpus": corpus,
        **cause_metadata(result),
        "rows in": report.rows_in,
        "rows dropped": sum(report.dropped.values()),
        "MB in": _megabytes(report.num_bytes_in),
        "MB out": _megabytes(report.num_bytes_out),
        "seconds": round(seconds, 3),
        "unchanged": result.unchanged,
    }
    if seconds > 0 and not result.unchanged:
        metadata["MB/s"] = round(report.num_bytes_in / 1e6 / seconds, 3)
    if result.warnings:
        metadata["warnings"] = "\n".join(result.warnings)
    of_copies = STAGES[result.stage].reasons_of_copies
    copies = [(reason, number) for reason, number in sorted(report.dropped.items()) if reason in of_copies]
    if copies:
        metadata["copies"] = bars(copies, "files that are copies or parts of others")
    metadata |= _tables(
        {
            "drops by reason": drop_rows(report),
            "parts": [_part_row(name, part) for name, part in result.source_reports.items()],
            "measures": [{"measure": name, "value": _rounded(value)} for name, value in report.measures.items()],
        }
    )
    return metadata | {"object_id": result.object_id}


def snapshot_metadata(store: Store, snapshot: Snapshot) -> dict[str, Any]:
    """Build the metadata of a snapshot: totals, rows in and out of each stage, licenses and sources."""
    sources = snapshot.sources
    totals: dict[str, Any] = {
        "documents": sum(source.num_documents for source in sources),
        "tokens": sum(source.num_tokens for source in sources),
        "MB of text": _megabytes(sum(source.num_text_bytes for source in sources)),
        "rows to train on": sum(source.num_rows_train for source in sources),
        "rows held out": sum(source.num_rows_held_out for source in sources),
    }
    rows = waterfall_rows(store, snapshot.snapshot_id)
    tables = {
        "waterfall": rows,
        "drops": dropped_rows(store, snapshot.snapshot_id),
        "licenses": license_rows(snapshot),
        "sources": [
            {
                "source": source.name,
                "revision": str(snapshot.content["pins"].get(source.name, {}).get("revision", ""))[:12],
                "documents": source.num_documents,
                "tokens": source.num_tokens,
                "rows to train on": source.num_rows_train,
                "rows held out": source.num_rows_held_out,
                "weight": _rounded(source.weight),
            }
            for source in sources
        ],
    }
    pictures = {
        "rows of each stage": bars([(str(row["stage"]), int(row["out"])) for row in rows], "rows that left each stage"),
        "lengths of documents": bars(token_lengths(snapshot), "documents by their number of tokens"),
    }
    return totals | pictures | _tables(tables)


def token_lengths(snapshot: Snapshot) -> list[tuple[str, int]]:
    """Count the documents of a snapshot by their number of tokens, in powers of four."""
    from pipeline.lineage.queries import connect, query, table_files  # not before a snapshot is shown: it loads DuckDB

    inputs = sorted(snapshot.stored.manifest.inputs.items())
    parts = [snapshot.store.read(object_id) for label, object_id in inputs if label.startswith("rows/")]
    counted = query(connect(), _LENGTHS, files=table_files(parts, TOKENS))
    return [(f"{4 ** row['power']:,} to {4 ** (row['power'] + 1) - 1:,}:", int(row["number"])) for row in counted]


def column_schema(record: type) -> dg.TableSchema:
    """Return the columns of a stored table for the UI: names and types, as Arrow writes them, and what they mean."""
    texts = column_texts(record)
    columns = [dg.TableColumn(field.name, str(field.type), texts[field.name]) for field in arrow_schema(record)]
    return dg.TableSchema(columns=columns)


def waterfall_rows(store: Store, snapshot_id: str) -> list[dict[str, Any]]:
    """List the rows in and out of each stage that made a snapshot."""
    rows = []
    for stored in evidence(store, snapshot_id):
        report = report_of(stored)
        row = {"stage": stage_of(stored), "in": report.rows_in, "out": report.rows_out}
        row |= {"for their license alone": evidence_files(report)[0], "dropped": sum(report.dropped.values())}
        rows.append(row | {"MB out": _megabytes(report.num_bytes_out)})
    return rows


def dropped_rows(store: Store, snapshot_id: str) -> list[dict[str, Any]]:
    """List what each stage that made a snapshot dropped, by reason."""
    return [
        {"stage": stage_of(stored), **row}
        for stored in evidence(store, snapshot_id)
        for row in drop_rows(report_of(stored))
    ]


def license_rows(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Count the documents of a snapshot by license expression, most frequent first."""
    counts = snapshot.licenses
    return _count_rows(("license", "documents"), counts, sum(counts.values()))


def drop_rows(report: StageReport) -> list[dict[str, Any]]:
    """List the drops by reason, most frequent first, and their share of the rows in."""
    return _count_rows(("reason", "rows"), report.dropped, report.rows_in)


def verdict_rows(verdicts: Sequence[GateVerdict]) -> list[dict[str, Any]]:
    """List each gate with its measure, limit and verdict."""
    return [
        {
            "stage": verdict.stage,
            "verdict": verdict.outcome,
            "measured": _rounded(verdict.measured),
            "limit": f"{SIGNS[verdict.comparison]} {verdict.limit:g}",
            "gate": verdict.gate,  # after what is short: the page cuts the last columns
        }
        for verdict in verdicts
    ]


def cause_metadata(result: StageResult) -> dict[str, str]:
    """Return what blocked a stage, the rule and three files, and the commands that show it; nothing where no gate did."""
    if not result.blocked:
        return {}
    sentences = [f"{each.sentence}." for each in result.verdicts if each.blocking and not each.passed]
    return {
        "blocked": " ".join([*sentences, result.causes]).strip(),
        "look at it by": "; ".join(result.questions),
    }


def table(rows: Sequence[Mapping[str, Any]]) -> dg.MetadataValue[Any]:
    """Return rows with the same keys as a table; there must be at least one."""
    columns = [dg.TableColumn(name, _KINDS[type(value)]) for name, value in rows[0].items()]
    return dg.MetadataValue.table([dg.TableRecord(dict(row)) for row in rows], schema=dg.TableSchema(columns=columns))


def sparkline(values: Sequence[float], form: str = "{:.4f}") -> dg.MetadataValue[Any]:
    """Draw a small line plot, captioned with its first and last value. At most 40 points are drawn, always with the last one."""
    step = max(1, -(-len(values) // _MAX_POINTS))
    points = [*values[: len(values) - 1 : step], values[-1]]
    low, high = min(points), max(points)
    scale = (_HEIGHT - 4) / ((high - low) or 1.0)
    across = _WIDTH / max(1, len(points) - 1)
    path = " ".join(
        f"{index * across:.0f},{_HEIGHT - 2 - (value - low) * scale:.0f}" for index, value in enumerate(points)
    )
    caption = f"{form.format(values[0])} to {form.format(values[-1])} in {len(values):,} steps"
    return _picture(f'<polyline fill="none" stroke="#36c" points="{path}"/>', _HEIGHT, caption)


def bars(counts: Sequence[tuple[str, int]], caption: str) -> dg.MetadataValue[Any]:
    """Draw a bar for each count, the longest as wide as the picture, with its name and number on it. At most 8 are drawn."""
    shown, most = counts[:_MAX_BARS], max(1, *(number for _, number in counts))
    lengths = "".join(
        f"M0,{_BAR * row}h{max(1, round(_WIDTH * number / most))}v{_BAR - 2}H0" for row, (_, number) in enumerate(shown)
    )
    words = "".join(
        f'<text x="3" y="{_BAR * row + 10}">{escape(name)} {number:,}</text>'
        for row, (name, number) in enumerate(shown)
    )
    drawn = f'<path fill="#9be" d="{lengths}"/><g font-size="10" font-family="sans-serif">{words}</g>'
    return _picture(drawn, _BAR * len(shown), caption)


def _picture(drawn: str, height: int, caption: str) -> dg.MetadataValue[Any]:
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}">{drawn}</svg>'
    encoded = base64.b64encode(picture.encode()).decode()
    return dg.MetadataValue.md(f"![{caption}](data:image/svg+xml;base64,{encoded})\n\n{caption}")


def _count_rows(columns: tuple[str, str], counts: Mapping[str, int], total: int) -> list[dict[str, Any]]:
    name, unit = columns
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{name: each, unit: number, "percent": round(100 * number / max(1, total), 1)} for each, number in ordered]


def _tables(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    return {name: table(entries) for name, entries in rows.items() if entries}


def _part_row(name: str, report: StageReport) -> dict[str, Any]:
    return {
        "part": name,
        "rows in": report.rows_in,
        "rows out": report.rows_out,
        "MB in": _megabytes(report.num_bytes_in),
        "MB out": _megabytes(report.num_bytes_out),
    }


def _megabytes(num_bytes: int) -> float:
    return round(num_bytes / 1e6, 3)


def _rounded(value: float) -> float:
    """Round to five digits to read; the store has them all."""
    return float(f"{value:.5g}") if value != int(value) else float(value)
