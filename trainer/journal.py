"""What a run writes for people and machines: a line of metrics a step, a line of progress, result.json at the end."""

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO


class Journal:
    """Writes `metrics.jsonl` under `folder` and progress to stderr. Times are measured here and enter nothing else."""

    def __init__(self, folder: Path, first_step: int, last_step: int, stream: TextIO | None = None) -> None:
        self.folder = folder
        self.first_step = first_step
        self.last_step = last_step
        self.stream = stream or sys.stderr
        folder.mkdir(parents=True, exist_ok=True)
        _keep_steps_before(folder / "metrics.jsonl", first_step)
        self._file = (folder / "metrics.jsonl").open("a", encoding="utf-8")
        self._started = self._before = time.monotonic()

    def step(self, step: int, metrics: Mapping[str, Any], num_tokens: int) -> None:
        """Record one finished step (counted from 1) and say how far the run is."""
        now = time.monotonic()
        seconds, self._before = now - self._before, now
        rate = num_tokens / seconds if seconds > 0 else 0.0
        line = {"step": step, **metrics, "seconds": round(seconds, 4), "tokens_per_second": round(rate)}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        left = (now - self._started) / (step - self.first_step) * (self.last_step - step)
        bar = "#" * (24 * step // self.last_step)
        text = f"train [{bar:<24}] {step}/{self.last_step}  loss {metrics['loss']:.4f}  {rate:,.0f} tokens/s  {left:.0f} s left"
        print(text, file=self.stream, flush=True)

    def say(self, text: str) -> None:
        """Tell a person something."""
        print(text, file=self.stream, flush=True)

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write result.json, whole or not at all."""
        self._file.close()
        temporary = self.folder / ".result.json"
        temporary.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        os.replace(temporary, self.folder / "result.json")


def _keep_steps_before(path: Path, first_step: int) -> None:
    """Drop the metrics of steps that will be run again, a line torn by a kill, and what is no line of metrics."""
    if not path.exists():
        return
    whole = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    kept = [line for line in whole if 1 <= _step_of(line) <= first_step]
    temporary = path.with_name(".metrics.jsonl")
    temporary.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    os.replace(temporary, path)


def _step_of(line: str) -> int:
    try:
        return int(json.loads(line)["step"])
    except (ValueError, TypeError, KeyError):
        return 0
