"""What is set here, what this machine can promise, and what would break it: each piece is tried, not looked up."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from trainer.determinism import CACHES, ENVIRONMENT, broken_promises, kernel_manifest, make_deterministic

_SEED = 42


@dataclass(frozen=True)
class Trial:
    """One piece of the table of what is repeatable: run twice here, forward and backward, and compared bit by bit."""

    device: str
    dtype: str
    piece: str
    is_repeatable: bool
    found: str


@dataclass(frozen=True)
class Diagnosis:
    """`is_promised` holds where the environment is right and every piece was repeatable."""

    is_promised: bool
    settings: dict[str, str]
    manifest: dict[str, object]
    broken_promises: list[str]
    trials: list[Trial]
    breakers: tuple[str, ...]


BREAKERS = (
    "another processor model, GPU architecture, system, torch, CUDA or cuDNN: other bits, refused on a resume",
    "another number of threads (the recipe's num_threads): sums are split otherwise",
    "torch imported before the environment was right: said in the run and recorded in its result",
    "another logical micro-batch or batch size: the numbers fork, and that is recorded",
    "an operation that adds in the order in which threads finish: strict mode raises where torch knows of it",
)


def diagnose() -> Diagnosis:
    """Try every piece on each device of this machine."""
    num_threads = min(2, os.cpu_count() or 1)
    make_deterministic(_SEED, num_threads)
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    trials = [trial for device in devices for trial in _trials(device)]
    broken = broken_promises()
    return Diagnosis(
        is_promised=not broken and all(trial.is_repeatable for trial in trials),
        settings=_settings(),
        manifest=kernel_manifest(devices[-1], num_threads),
        broken_promises=broken,
        trials=trials,
        breakers=BREAKERS,
    )


def lines(found: Diagnosis) -> Iterator[str]:
    """The diagnosis for people."""
    yield from (f"set      {name} = {value}" for name, value in found.settings.items())
    yield from (f"machine  {name} = {value}" for name, value in found.manifest.items())
    for trial in found.trials:
        yield f"tried    {trial.device} {trial.dtype:<8} {trial.piece:<12} {trial.found}"
    yield from (f"breaks   {text}" for text in found.breakers)
    yield from (f"broken   {text}" for text in found.broken_promises)
    yield "promised: two runs and any resume are bit-identical here" if found.is_promised else "NOT PROMISED, see above"


def _settings() -> dict[str, str]:
    names = [*ENVIRONMENT, *CACHES]
    settings = {name: os.environ.get(name, "not set") for name in names}
    return settings | {
        "deterministic algorithms": "strict" if torch.are_deterministic_algorithms_enabled() else "off",
        "fill_uninitialized_memory": str(torch.utils.deterministic.fill_uninitialized_memory),
        "float32 matmul precision": torch.get_float32_matmul_precision(),
        "cudnn.benchmark": str(torch.backends.cudnn.benchmark),
        "threads": str(torch.get_num_threads()),
        "hash randomisation": "off" if not sys.flags.hash_randomization else "on",
    }


def _trials(device: str) -> Iterator[Trial]:
    for dtype in (torch.float32, torch.bfloat16):
        for piece, run in _PIECES.items():
            yield _try(device, dtype, piece, run)


def _try(device: str, dtype: torch.dtype, piece: str, run: Callable[[list[Tensor]], Tensor]) -> Trial:
    name = str(dtype).removeprefix("torch.")
    try:
        one, other = (_gradients(device, dtype, run) for _ in range(2))
    except RuntimeError as error:
        return Trial(device, name, piece, False, f"refused: {str(error).splitlines()[0][:80]}")
    is_equal = all(
        torch.equal(mine.view(torch.uint8), theirs.view(torch.uint8)) for mine, theirs in zip(one, other, strict=True)
    )
    return Trial(device, name, piece, is_equal, "twice the same bits" if is_equal else "OTHER BITS the second time")


def _gradients(device: str, dtype: torch.dtype, run: Callable[[list[Tensor]], Tensor]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(_SEED)
    inputs = [torch.randn(256, 256, generator=generator).to(device, dtype).requires_grad_() for _ in range(3)]
    output = run(inputs)
    output.float().square().sum().backward()
    return [output.detach(), *(each.grad for each in inputs if each.grad is not None)]


def _attention(inputs: list[Tensor]) -> Tensor:
    query, key, value = (each.view(2, 2, 64, 256) for each in inputs)
    return functional.scaled_dot_product_attention(query, key, value, is_causal=True)


def _embedding(inputs: list[Tensor]) -> Tensor:
    ids = torch.arange(2048, device=inputs[0].device) % 7
    return functional.embedding(ids, inputs[0])


def _index_add(inputs: list[Tensor]) -> Tensor:
    ids = torch.arange(256, device=inputs[0].device) % 5
    return torch.zeros_like(inputs[0]).index_add(0, ids, inputs[1])


_PIECES: dict[str, Callable[[list[Tensor]], Tensor]] = {
    "gemm": lambda inputs: inputs[0] @ inputs[1],
    "attention": _attention,
    "embedding": _embedding,
    "index_add": _index_add,
    "sort": lambda inputs: torch.sort(inputs[0], dim=-1, stable=True).values,
    "log-sum-exp": lambda inputs: torch.logsumexp(inputs[0] @ inputs[1], dim=-1),
}
