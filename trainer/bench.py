"""`python -m trainer bench`: tokens a second of whole training steps on made rows, a row of JSON for each model and mode.

    MFU = tokens/s * FLOPs a token / peak of the GPU's bf16 matrix products
    FLOPs a token = 6 * (active parameters - embedding that is no head) + 6 * A layers * T * query heads * head size

A row is measured in two fresh processes, the first with an empty cache of compiled code and the second with what the first left:
what a step takes comes from the second. Rows that the file has for the same GPU, driver, torch and Triton stay, so that a run that
stopped goes on at the first that is missing.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from pipeline.errors import TrainingError
from trainer.attention_choices import default_choice, plan
from trainer.compile_cache import FOLDERS
from trainer.config import BlockKind, CompileBackend, CompileMode, OptimizerConfig, Precision
from trainer.determinism import make_deterministic
from trainer.model.hybrid import HybridModel, TrainingBatch
from trainer.optimizer import build_optimizer, clip_gradients
from trainer.parallel import Ranks
from trainer.presets import TARGETS, preset
from trainer.recipes import recipe_named
from trainer.sizes import sizes_of

PEAK_FLOPS = {"H100": 989e12, "H200": 989e12, "A100": 312e12}
NUM_STEPS = 10
NUM_DOCUMENTS = 4
"""Documents of a row."""


@dataclass(frozen=True)
class Case:
    """One row: a model, how it is compiled, and the size of a step."""

    name: str
    preset: str
    compile: CompileMode
    num_rows: int
    length: int
    deterministic: bool = True
    dtype: Precision = Precision.BFLOAT16
    backend: CompileBackend = CompileBackend.INDUCTOR


_FULLGRAPH, _BUDGETED, _OFF = CompileMode.FULLGRAPH, CompileMode.BUDGETED, CompileMode.OFF
CASES = (
    Case("train-small", "small", _FULLGRAPH, 16, 1024),
    Case("train-base", "base", _FULLGRAPH, 4, 4096),
    Case("train-nam56r", "nam56r", _FULLGRAPH, 1, 4096),
    Case("train-base-not-deterministic", "base", _FULLGRAPH, 4, 4096, deterministic=False),
    Case("train-base-budgeted", "base", _BUDGETED, 4, 4096),
    Case("train-base-off", "base", _OFF, 4, 4096),
    Case("train-nam52", "nam52", _FULLGRAPH, 1, 4096),
)
DRY_CASES = tuple(
    Case(f"dry-tiny-{mode}", "tiny", mode, 2, 32, backend=CompileBackend.EAGER)
    for mode in (_OFF, _FULLGRAPH, _BUDGETED)
)


def bench(options: argparse.Namespace) -> Any:
    """Measure the rows that the file lacks, until the budget is spent. Exit code 1 where one failed, or there is no GPU."""
    cases = [case for case in (DRY_CASES if options.dry_run else CASES) if options.only in (None, case.name)]
    if not cases:
        raise TrainingError(f"row {options.only}", "there is none of that name", ", ".join(case.name for case in CASES))
    if options.measure:
        given = {"backend": CompileBackend(options.backend)} if options.backend else {}
        return measure(replace(cases[0], **given))
    if not options.dry_run and not torch.cuda.is_available():
        raise TrainingError(
            "bench", "torch sees no CUDA device", "one, for timings", "--dry-run runs the rows without."
        )
    began, rows = time.monotonic(), _rows(options.out)
    for case in cases:
        if _key({"name": case.name, **surroundings()}) in {_key(row) for row in rows}:
            continue
        left = options.budget - (time.monotonic() - began)
        row = _measured(case, options.dry_run, left) if left > 0 else None
        if row is None:
            print(f"{case.name}: the budget is spent; run again to go on here", file=sys.stderr)
            break
        rows.append(row)
        print(f"{case.name}: {row.get('failed') or row['tokens_per_second']}", file=sys.stderr, flush=True)
        if options.out:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, sort_keys=True) + "\n")
    return {"rows": rows, "exit_code": int(any("failed" in row for row in rows))}


def surroundings() -> dict[str, Any]:
    """What a timing depends on besides the code."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    driver = Path("/sys/module/nvidia/version")
    return {
        "gpu": gpu,
        "driver": driver.read_text().strip() if driver.exists() else None,
        "torch": torch.__version__,
        "triton": next((each.version for each in metadata.distributions(name="triton")), None),
    }


def measure(case: Case) -> dict[str, Any]:
    """One row, in this process and with its cache."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    make_deterministic(42, torch.get_num_threads(), case.deterministic)
    size, config = TARGETS[case.preset].vocabulary_size, preset(case.preset)
    with torch.device(device):
        model = HybridModel(config, size)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.02)
    model.dtype = getattr(torch, case.dtype)
    way = default_choice(device, case.dtype)
    model.attention = plan(way, config.attention.head_size, case.dtype, device, lambda: NUM_DOCUMENTS)
    optimizer = build_optimizer(model, recipe_named(case.preset).optimizer)
    compilation = _compilation(model, case)
    batch, seconds = _made_batch(case, size, device), []
    for step in range(1, NUM_STEPS + 1):
        began = time.perf_counter()
        _step(model, optimizer, compilation, batch, step, recipe_named(case.preset).optimizer)
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return {**_row(case, seconds, compilation, size), "attention": way}


def _compilation(model: HybridModel, case: Case) -> Any:
    if case.compile is CompileMode.OFF:
        return None
    from trainer.compilation import Compilation

    return Compilation(model, case.compile, case.backend, case.deterministic)


def _step(
    model: HybridModel, optimizer: Any, compilation: Any, batch: TrainingBatch, step: int, config: OptimizerConfig
) -> None:
    if compilation is None:
        model.loss(batch)[0].backward()  # type: ignore[no-untyped-call]  # torch's own signature
    else:
        with compilation.guarded(step):
            model.loss(batch)[0].backward()  # type: ignore[no-untyped-call]  # torch's own signature
        compilation.end_step(step, [], Ranks())
    clip_gradients(model.named_parameters(), config.max_gradient_norm)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    model.balance_experts(1e-3)


def _made_batch(case: Case, vocabulary_size: int, device: str) -> TrainingBatch:
    """Rows of documents of random ids."""
    generator = torch.Generator().manual_seed(42)
    ids_BT = torch.randint(0, vocabulary_size, (case.num_rows, case.length), generator=generator)
    documents_T = torch.arange(case.length) * NUM_DOCUMENTS // case.length + 1
    parts = (ids_BT, ids_BT.roll(-1, 1), torch.ones_like(ids_BT), documents_T.expand_as(ids_BT).contiguous())
    return TrainingBatch(*(part.to(device) for part in parts))


def _row(case: Case, seconds: list[float], compilation: Any, vocabulary_size: int) -> dict[str, Any]:
    later = sorted(seconds[2:])
    step = later[len(later) // 2]
    rate = case.num_rows * case.length / step
    flops, here = flops_a_token(case, vocabulary_size), surroundings()
    peak = next((value for name, value in PEAK_FLOPS.items() if name in here["gpu"]), None)
    memory = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else _peak_memory()
    return {
        **asdict(case),
        **here,
        "tokens_per_second": rate,
        "step_seconds": step,
        "first_step_seconds": seconds[0],
        "flops_a_token": flops,
        "mfu": rate * flops / peak if peak else None,
        "memory_bytes": memory,
        "frames": len(compilation.watch.frames) if compilation else 0,
        "breaks": compilation.watch.num_breaks if compilation else 0,
        "recompiles": 0,  # one after the warm-up would have ended the run
    }


def flops_a_token(case: Case, vocabulary_size: int) -> float:
    """The formula of the file's head."""
    config = preset(case.preset)
    active = sizes_of(config, vocabulary_size).num_active_parameters
    active -= 0 if config.is_head_tied else vocabulary_size * config.width
    num_attention = sum(kind is BlockKind.ATTENTION for kind in config.layer_kinds)
    part = config.attention
    return 6.0 * active + 6.0 * num_attention * case.length * part.num_query_heads * part.head_size


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _measured(case: Case, is_dry: bool, seconds_left: float) -> dict[str, Any] | None:
    """A row of two processes, or None where the time did not suffice. A failure is a row too."""
    line = [sys.executable, "-m", "trainer", "bench", "--measure", "--only", case.name, "--json"]
    line += ["--dry-run"] if is_dry else []
    deadline, rows = time.monotonic() + seconds_left, []
    with tempfile.TemporaryDirectory() as folder:
        places = {name: str(Path(folder) / part) for name, part in FOLDERS.items()}
        for _ in range(2):
            try:
                done = subprocess.run(
                    line,
                    capture_output=True,
                    text=True,
                    env={**os.environ, **places},
                    timeout=max(1.0, deadline - time.monotonic()),
                )
            except subprocess.TimeoutExpired:
                return None
            if done.returncode:
                words = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
                return {**asdict(case), **surroundings(), "failed": words[-1][:300]}
            rows.append(json.loads(done.stdout))
    cold, warm = rows
    compiles = {f"{word}_start_seconds": row["first_step_seconds"] for word, row in (("cold", cold), ("warm", warm))}
    return {**warm, **compiles}


def _rows(path: Path | None) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("name", "gpu", "driver", "torch", "triton"))
