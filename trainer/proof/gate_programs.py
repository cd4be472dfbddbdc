"""Programs for acceptance gates: what no command-line option does, each run in a fresh process.

python -m trainer.proof.gate_programs NAME ARGUMENT...    prints one JSON value
"""

import importlib
import io
import json
import random
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trainer.config.presets import preset
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize


def run_in_one_process(lines: str) -> int:
    """Run several command lines of `python -m trainer` one after the other, to the first that fails."""
    for line in json.loads(lines):
        with redirect_stdout(io.StringIO()):
            code = _run_command(line)
        if code:
            return code
    print("{}")
    return 0


def train_with_race(line: str) -> int:
    """Train with one sum in an order that no seed decides, as an atomic addition would have it.

    The terms have both signs, so that orders round differently, and the norm that follows must not remove the difference.
    """
    run = HybridModel._run

    def race(self: HybridModel, *arguments: Any) -> tuple[Tensor, Tensor]:
        hidden_BTD, penalty = run(self, *arguments)
        values = hidden_BTD.detach().flatten()[:20_000]
        order = torch.tensor(random.SystemRandom().sample(range(len(values)), len(values)))
        total = torch.zeros(())
        for part in values[order].split(50):
            total = total + part.sum()
        return hidden_BTD + total.sin() * (torch.arange(hidden_BTD.shape[-1]) % 2), penalty

    HybridModel._run = race  # type: ignore[method-assign,assignment]
    return _run_command(json.loads(line))


def read_damaged(folder: str, line: str) -> int:
    """Run a command line once with one bit of a file flipped and once with a byte less, for each file of a folder."""
    found = []
    for file in sorted(Path(folder).iterdir()):
        content = file.read_bytes()
        flipped = bytearray(content)
        flipped[len(content) // 2] ^= 1
        for damaged in (bytes(flipped), content[:-1]):
            file.write_bytes(damaged)
            complaints = io.StringIO()
            with redirect_stderr(complaints):
                code = _run_command(json.loads(line))
            found.append([file.name, code, complaints.getvalue()])
        file.write_bytes(content)
    print(json.dumps(found))
    return 0


def build_without_engram() -> int:
    """Build the smallest model with and without its Engram branch; print the tensors that should not differ but do."""
    on = preset("tiny")
    engram = on.attention.engram.model_copy(update={"layers": ()})
    off = on.model_copy(update={"attention": on.attention.model_copy(update={"engram": engram})})
    models = [HybridModel(config, 1024) for config in (on, off)]
    for model in models:
        initialize(model, 42)
    one, other = (model.state_dict() for model in models)
    answer = {
        "left": [name for name in other if "engram" in name or not any("engram" in known for known in one)],
        "moved": [name for name in other if not torch.equal(one[name], other[name])],
        "count": len(other),
    }
    print(json.dumps(answer))
    return 0


PROGRAMS: dict[str, Callable[..., int]] = {
    program.__name__: program for program in (run_in_one_process, train_with_race, read_damaged, build_without_engram)
}


def _run_command(line: list[str]) -> int:
    """Run `python -m trainer` in this process. It is loaded by name: the command line is above this folder."""
    return int(importlib.import_module("trainer.__main__").main(line))


if __name__ == "__main__":
    sys.exit(PROGRAMS[sys.argv[1]](*sys.argv[2:]))
