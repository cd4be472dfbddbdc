"""The table and the picture of `make learn`, from its rows: losses at equal tokens, with their spread over the seeds."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from tests.benchmarks.figure import machine

MARK, END = "<!-- made by `make learn` -->\n", "<!-- end of what `make learn` made -->\n"
PICTURE = "learning.svg"
COLORS = ("#111111", "#c0392b", "#2471a3", "#1e8449", "#b9770e", "#7d3c98", "#7f8c8d")
WIDTH, HEIGHT, MARGIN, SMOOTHED_STEPS = 720, 360, 40, 10
Row = dict[str, Any]


def read_rows(path: Path, snapshot_id: str, steps: int) -> list[Row]:
    """Return the rows of a file that are of this snapshot and so many steps."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [row for row in map(json.loads, lines) if row["snapshot_id"] == snapshot_id and row["steps"] == steps]


def table(rows: Sequence[Row]) -> list[str]:
    """Return the lines of the table, a model each: means over the seeds, and the least and the greatest of the held-out loss."""
    lines = [
        "| model | parameters | active | loss of the last quarter | held out | least to greatest | against the hybrid |",
        "|---|---|---|---|---|---|---|",
    ]
    by_model = _by_model(rows)
    of_first = {row["seed"]: row["held_out"] for row in next(iter(by_model.values()))}
    for name, found in by_model.items():
        held_out = [row["held_out"] for row in found]
        gaps = [row["held_out"] - of_first[row["seed"]] for row in found if row["seed"] in of_first]
        cells = (
            name,
            f"{found[0]['num_parameters'] / 1e3:.0f} K",
            f"{found[0]['num_active_parameters'] / 1e3:.0f} K",
            f"{mean(row['last_quarter'] for row in found):.3f}",
            f"{mean(held_out):.3f}",
            f"{min(held_out):.3f} to {max(held_out):.3f}",
            f"{mean(gaps):+.3f} ({min(gaps):+.3f} to {max(gaps):+.3f})" if any(gaps) else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def write(page: Path, rows: Sequence[Row]) -> None:
    """Replace what stands between the marks of a page, and the picture beside it."""
    before, _, rest = page.read_text(encoding="utf-8").partition(MARK)
    first = rows[0]
    seeds = len({row["seed"] for row in rows})
    told = (
        f"{first['steps']} steps, {first['num_tokens']:,} tokens, {seeds} seeds, equal batches for each seed, on {machine()}; "
        f"{sum(row['seconds'] for row in rows) / 60:.0f} minutes in all. Losses are nats a token."
    )
    shown = f"![Loss by step, mean over the seeds]({PICTURE})"
    made = "\n".join([told, "", *table(rows), "", shown, ""])
    page.write_text(f"{before}{MARK}\n{made}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    page.with_name(PICTURE).write_text(picture(rows), encoding="utf-8")


def picture(rows: Sequence[Row]) -> str:
    """Return an SVG of the training losses: a line a model, the mean of the seeds and of some steps."""
    curves = {name: _smoothed([row["losses"] for row in found]) for name, found in _by_model(rows).items()}
    lowest = min(map(min, curves.values()))
    highest = max(
        curve[len(curve) // 8] for curve in curves.values()
    )  # the first steps would leave no room for the rest
    num_points = max(map(len, curves.values()))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for place, (name, curve) in enumerate(curves.items()):
        points = " ".join(
            f"{MARGIN + (WIDTH - 2 * MARGIN) * step / (num_points - 1):.1f},"
            f"{MARGIN + (HEIGHT - 2 * MARGIN) * (highest - loss) / (highest - lowest):.1f}"
            for step, loss in enumerate(curve)
            if loss <= highest
        )
        lines.append(f'<polyline fill="none" stroke="{COLORS[place]}" stroke-width="1.5" points="{points}"/>')
        label = f"{name} {curve[-1]:.2f}".replace("`", "")
        lines.append(f'<text x="{WIDTH - 220}" y="{MARGIN + 16 * place}" fill="{COLORS[place]}">{label}</text>')
    axes = f"loss {highest:.2f} to {lowest:.2f}, steps 1 to {rows[0]['steps']}, means of {SMOOTHED_STEPS} steps"
    return "\n".join([*lines, f'<text x="{MARGIN}" y="{HEIGHT - 12}">{axes}</text>', "</svg>", ""])


def _smoothed(losses: Sequence[Sequence[float]]) -> list[float]:
    means = [mean(step) for step in zip(*losses, strict=True)]
    return [mean(means[first : first + SMOOTHED_STEPS]) for first in range(0, len(means), SMOOTHED_STEPS)]


def _by_model(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["model"], []).append(row)
    return found
