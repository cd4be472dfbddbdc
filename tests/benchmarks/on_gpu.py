"""What is to be reached on a GPU, and what the rows of `make bench-gpu` say of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path("docs/benchmarks")
Row = dict[str, Any]
Read = Callable[[list[Row]], float | None]

HEAD = """
## On a GPU

From the rows under `docs/benchmarks/`, which `make bench-gpu` measures.

| figure | value | to reach | holds | measured on |
|---|---|---|---|---|
"""


def _training(name: str, field: str, factor: float = 1.0) -> Read:
    def read(rows: list[Row]) -> float | None:
        found = [row[field] for row in rows if row.get("name") == name and row.get(field) is not None]
        return found[-1] * factor if found else None

    return read


def _median(rows: list[Row], kernel: str, implementation: str) -> float | None:
    found = [
        row["forward_backward_ms"]["median"]
        for row in rows
        if row.get("kernel") == kernel and row.get("implementation") == implementation and "forward_backward_ms" in row
    ]
    return found[-1] if found else None


def _ratio(kernel: str, over: str, under: str) -> Read:
    def read(rows: list[Row]) -> float | None:
        above, below = _median(rows, kernel, over), _median(rows, kernel, under)
        return above / below if above and below else None

    return read


def _determinism_cost(rows: list[Row]) -> float | None:
    strict = _training("train-base", "step_seconds")(rows)
    free = _training("train-base-not-deterministic", "step_seconds")(rows)
    return 100 * (strict / free - 1) if strict and free else None


def _unknown(rows: list[Row]) -> float | None:
    """No row holds it yet."""
    return None


def _at_least(limit: float) -> Callable[[float], bool]:
    return lambda value: value >= limit


def _at_most(limit: float) -> Callable[[float], bool]:
    return lambda value: value <= limit


FIGURES: dict[str, tuple[Read, str, Callable[[float], bool]]] = {
    "graph, breaks of train-nam56r": (_training("train-nam56r", "breaks"), "0", _at_most(0)),
    "mamba3": (_ratio("mamba3_scan", "mamba_ssm", "kernel"), ">= 1.2 x the public kernels", _at_least(1.2)),
    "train-base": (_training("train-base", "mfu", 100), ">= 35 % MFU", _at_least(35)),
    "train-nam56r": (_training("train-nam56r", "tokens_per_second"), "> 9,250 tokens/s", _at_least(9250.0001)),
    "expert-padding": (_unknown, "<= 27 % of the slots, in a training", _at_most(27)),
    "loss": (_ratio("chunked_cross_entropy", "kernel", "torch, all logits"), "<= 1.1 x eager", _at_most(1.1)),
    "loss/memory": (_unknown, "<= 0.1 x eager", _at_most(0.1)),
    "warm-start": (_training("train-nam56r", "warm_start_seconds"), "<= 30 s", _at_most(30)),
    "packing-invariance": (_unknown, "packed as alone, bf16", _at_least(1)),
    "determinism-cost": (_determinism_cost, "<= 5 % of a step", _at_most(5)),
}


def section(folder: Path = FOLDER) -> str:
    """The table of the page."""
    rows = [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    rows = [row for row in rows if not str(row.get("gpu", "none")).startswith("none")]
    place = ", ".join(sorted({row["gpu"] for row in rows}))
    lines = []
    for name, (read, reach, holds) in FIGURES.items():
        value = read(rows)
        cells = ("not yet measured", reach, "", "")
        if value is not None:
            cells = (f"{value:,.4g}", reach, "yes" if holds(value) else "**no**", place)
        lines.append(f"| {name} | {' | '.join(cells)} |\n")
    return HEAD + "".join(lines)
