"""Targets on a GPU, and the measurements of `make bench-gpu` beside them, for each GPU that has rows.

`python -m tests.benchmarks.trainer.on_gpu [--write FILE]` prints that table, or puts it in its place at the end of the page.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path("docs/benchmarks")
ROWS = ("kernels.jsonl", "training.jsonl")
FEW_PROGRAMS = 132  # rows times heads below the processors of an H100 or H200
PUBLIC_MAMBA3 = "mamba_ssm mamba3_siso_combined, without documents"
Row = dict[str, Any]
Found = float | str | None
"""A number, the reason why it is missing, or nothing."""
Read = Callable[[list[Row]], Found]

HEAD = """
## On a GPU

From the rows under `docs/benchmarks/`, which `make bench-gpu` measures.

| figure | value | to reach | holds | measured on |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class GpuFigure:
    """`read` finds the figure in the rows of one GPU. `holds` is None where nothing is to be reached."""

    name: str
    read: Read
    reach: str
    holds: Callable[[float], bool] | None = None


def _row(name: str, measure: Callable[[Row], float | None]) -> Read:
    """Return a reader of the last row of that name."""

    def read(rows: list[Row]) -> Found:
        found = [row for row in rows if row.get("name") == name]
        return _value(found[-1], measure) if found else None

    return read


def _of(name: str, field: str, factor: float = 1.0) -> Read:
    return _row(name, lambda row: None if row[field] is None else factor * row[field])


def _step_ratio(name: str, other: str) -> Read:
    """The seconds of a step over those of another row."""

    def read(rows: list[Row]) -> Found:
        sides = [_of(each, "step_seconds")(rows) for each in (name, other)]
        numbers = [side for side in sides if isinstance(side, float)]
        reasons = [side for side in sides if isinstance(side, str)]
        return numbers[0] / numbers[1] if len(numbers) == 2 else next(iter(reasons), None)

    return read


def _ratio(
    kernel: str,
    over: str,
    under: str,
    measure: Callable[[Row], float | None],
    choose: Callable[[Row], bool],
    worst: Any,
) -> Read:
    """The worst ratio of two implementations over the sizes at which both have bfloat16 rows."""

    def read(rows: list[Row]) -> Found:
        chosen = [row for row in rows if row.get("kernel") == kernel and row["dtype"] == "bfloat16" and choose(row)]
        sides: list[dict[str, Found]] = [
            {row["case"]: _value(row, measure) for row in chosen if row["implementation"] == name}
            for name in (over, under)
        ]
        pairs = [(sides[0][case], sides[1][case]) for case in sides[0] if case in sides[1]]
        ratios = [one / two for one, two in pairs if isinstance(one, float) and isinstance(two, float) and two]
        reasons = [each for side in sides for each in side.values() if isinstance(each, str)]
        return worst(ratios) if ratios and not reasons else next(iter(reasons), None)

    return read


def _value(row: Row, measure: Callable[[Row], float | None]) -> Found:
    if "failed" in row:
        return f"failed: {row['failed']}"
    try:
        value = measure(row)
    except KeyError as error:
        return f"its row lacks {error}"
    return "its row has no number for this GPU" if value is None else float(value)


def _milliseconds(row: Row) -> float:
    return float(row["forward_backward_ms"]["median"])


def _device_milliseconds(row: Row) -> float:
    return float(row["forward_backward_device_ms"]["median"])


def _bytes(row: Row) -> float | None:
    return None if row["extra_bytes"] is None else float(row["extra_bytes"])


def _has_few_programs(row: Row) -> bool:
    sizes = [int(size) for size in row["case"].split("x")]
    return sizes[0] * sizes[2] < FEW_PROGRAMS


def _at_least(limit: float) -> Callable[[float], bool]:
    return lambda value: value >= limit


def _at_most(limit: float) -> Callable[[float], bool]:
    return lambda value: value <= limit


def _has_few_programs_ahead(row: Row) -> bool:
    """Return whether a row of few programs was timed with launches ahead of the GPU too; early ones were not."""
    return _has_few_programs(row) and "forward_backward_device_ms" in row


def _mamba3(is_chosen: Callable[[Row], bool], measure: Callable[[Row], float] = _milliseconds) -> Read:
    return _ratio("mamba3_scan", PUBLIC_MAMBA3, "kernel", measure, is_chosen, min)


def _loss(measure: Callable[[Row], float | None]) -> Read:
    return _ratio("chunked_cross_entropy", "kernel", "torch, all logits", measure, lambda row: True, max)


def _digested_rate(rows: list[Row]) -> Found:
    """Return GB a second of the last measured digest of a state."""
    found = [row for row in rows if row.get("kernel") == "tensor_digest" and row["implementation"] == "kernel"]
    return _value(found[-1], lambda row: 8 * int(row["case"]) / row["forward_ms"]["median"] / 1e6) if found else None


_MODEL, _TRAINING = "train-nam56r", "training-in-bfloat16"
FIGURES: tuple[GpuFigure, ...] = (
    GpuFigure("graph/breaks", _of(_MODEL, "breaks"), "0 of train-nam56r", _at_most(0)),
    GpuFigure("graph/frames", _of(_MODEL, "frames"), "<= 6 of train-nam56r", _at_most(6)),
    GpuFigure("graph/later", _of(_MODEL, "recompiles"), "0 frames after the warm-up", _at_most(0)),
    GpuFigure("graph/modes", _step_ratio("train-base", "train-base-budgeted"), "<= 1 x budgeted's step", _at_most(1)),
    GpuFigure("mamba3", _mamba3(_has_few_programs), ">= 1.2 x the public kernel, few heads", _at_least(1.2)),
    GpuFigure(
        "mamba3/device",
        _mamba3(_has_few_programs_ahead, _device_milliseconds),
        ">= 1.2 x the public kernel, few heads, launches ahead of the GPU",
        _at_least(1.2),
    ),
    GpuFigure(
        "mamba3/many-heads", _mamba3(lambda row: not _has_few_programs(row)), ">= 1 x the public kernel", _at_least(1)
    ),
    GpuFigure("train-base", _of("train-base", "mfu", 100), ">= 35 % MFU", _at_least(35)),
    GpuFigure("train-nam56r", _of(_MODEL, "tokens_per_second"), "> 9,250 tokens/s", lambda value: value > 9250),
    GpuFigure(
        "expert-padding",
        _of(_TRAINING, "expert_padding_fraction", 100),
        "<= 27 % of the slots, after 100 steps",
        _at_most(27),
    ),
    GpuFigure(
        "expert-padding/overflow", _of(_TRAINING, "expert_overflow_fraction", 100), "0 % of the pairs", _at_most(0)
    ),
    GpuFigure("loss", _loss(_milliseconds), "<= 1.1 x eager", _at_most(1.1)),
    GpuFigure("loss/memory", _loss(_bytes), "<= 0.1 x eager", _at_most(0.1)),
    GpuFigure("state-digest", _digested_rate, ">= 400 GB/s: 0.1 s for the state of nam56r", _at_least(400)),
    GpuFigure("warm-start", _of(_MODEL, "warm_start_seconds"), "<= 30 s", _at_most(30)),
    GpuFigure("warm-start/cold", _of(_MODEL, "cold_start_seconds"), "s, reported"),
    GpuFigure(
        "packing-invariance",
        _row("packing-invariance", lambda row: row["num_touched"] + row["num_different_alone"]),
        "0 numbers differ, packed or alone, bf16",
        _at_most(0),
    ),
    GpuFigure(
        "packing-invariance/moved", _of("packing-invariance", "moved_eps"), "eps, first in a row of its own; reported"
    ),
    GpuFigure("determinism-cost", _of("determinism-cost", "cost_fraction", 100), "<= 5 % of a step", _at_most(5)),
    GpuFigure(
        "resume-bfloat16",
        _row(_TRAINING, lambda row: len(row["different"])),
        "0 digests differ, three fresh processes",
        _at_most(0),
    ),
)


def section(folder: Path = FOLDER) -> str:
    """The table of the page. What no GPU has measured is never shown as a figure."""
    paths = [folder / name for name in ROWS if (folder / name).exists()]
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    rows = [row for row in rows if not row.get("dry") and not str(row.get("gpu", "none")).startswith("none")]
    gpus = sorted({row["gpu"] for row in rows})
    return HEAD + "".join(line for figure in FIGURES for line in _lines(figure, rows, gpus))


def _lines(figure: GpuFigure, rows: list[Row], gpus: list[str]) -> list[str]:
    found = {gpu: figure.read([row for row in rows if row["gpu"] == gpu]) for gpu in gpus}
    lines = [_line(figure, value, gpu) for gpu, value in found.items() if value is not None]
    return lines or [_line(figure, "not yet measured", "")]


def _line(figure: GpuFigure, value: float | str, gpu: str) -> str:
    if isinstance(value, str):
        cells = [value.replace("|", "/"), figure.reach, "", gpu]
    else:
        verdict = "" if figure.holds is None else "yes" if figure.holds(value) else "**no**"
        cells = [f"{value:,.0f}" if value >= 1000 else f"{value:.4g}", figure.reach, verdict, gpu]
    return f"| {figure.name} | {' | '.join(cells)} |\n"


def without_section(page: str) -> str:
    """The page up to the table."""
    return page.partition("\n## On a GPU")[0]


def main() -> None:
    """Print the table, or put it into a page."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.trainer.on_gpu")
    parser.add_argument("--write", type=Path, help="the page that gets the table; the rest of it stays")
    options = parser.parse_args()
    if options.write:
        options.write.write_text(without_section(options.write.read_text()) + section())
    else:
        print(section().strip())


if __name__ == "__main__":
    main()
