"""Mutations of kernels, by rule: each value that a Triton kernel stores becomes zero, and parity in the interpreter must see it."""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.mutations.bench import Bench
from tests.mutations.mutation import Kind, Mutation
from tests.mutations.plant import NotPlantedError
from tests.support.paths import ROOT

_SHARED = {"framework": "rms_norm"}
"""Operation that is compared where a file is of none: the first that uses it."""
_TIMEOUT_SECONDS = 200
_DIFFERS = 3
_COMPARE = f"""
import importlib.util, sys, torch
name = sys.argv[1]
found = importlib.import_module(f"kernels.{{name}}")
spec = getattr(found, "SPEC", None) or importlib.import_module(f"kernels.{{name}}.op").SPEC
from kernels.measure.parity import measure_parity
for case in spec.cases:
    for result in measure_parity(spec, torch.float32, case, "cpu", 0):
        if not result.passed:
            sys.exit(f"{{case.label}} {{result.output}}" and {_DIFFERS})
"""
"""Program that compares one operation with its reference in float32 and ends at the first result that differs."""


def mutations() -> Iterator[Mutation]:
    """Return a mutation for each `tl.store` of the kernels."""
    for path in sorted((ROOT / "kernels").rglob("*.py")):
        name = path.relative_to(ROOT / "kernels").with_suffix("").as_posix()
        for number, (function, _) in enumerate(stored_values(path)):
            run = partial(_run, path.relative_to(ROOT), number)
            planted = f"value {number + 1} that the kernels of {name} store, in {function}, is zero"
            yield Mutation(f"kernel/{name}/{number + 1}", Kind.KERNELS, planted, ("parity",), run)


def stored_values(path: Path) -> list[tuple[str, ast.expr]]:
    """Return the values that the kernels of a file store, each with the name of its function, in their order."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    found = [
        (function.name, node.args[1])
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.store"
    ]
    return sorted(found, key=lambda each: (each[1].lineno, each[1].col_offset))


def _run(place: Path, number: int, bench: Bench) -> None:
    tree = bench.folder / "tree"
    shutil.copytree(ROOT / "kernels", tree / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    values = stored_values(tree / place)
    if number >= len(values):
        raise NotPlantedError(f"{place} stores {len(values)} values")
    _make_zero(tree / place, values[number][1])
    operation = _SHARED.get(place.parts[1], Path(place.parts[1]).stem)
    environment = os.environ | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, "-c", _COMPARE, operation],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode:
        bench.say(
            "parity" if done.returncode == _DIFFERS else "crash:parity", (done.stderr.strip().splitlines() or [""])[-1]
        )


def _make_zero(path: Path, value: ast.expr) -> None:
    lines = path.read_text().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    assert value.end_lineno is not None
    assert value.end_col_offset is not None
    first, last = starts[value.lineno - 1] + value.col_offset, starts[value.end_lineno - 1] + value.end_col_offset
    text = "".join(lines)
    path.write_text(f"{text[:first]}({text[first:last]}) * 0{text[last:]}")
