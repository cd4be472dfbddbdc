"""Diagnosis of this machine: its settings, and the operations that are repeatable on it, each tried here."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from trainer.checkpoint.environment import describe_environment
from trainer.compile.cache import CACHE_FOLDERS, SWITCHES
from trainer.config.choices import Precision
from trainer.config.presets import preset
from trainer.model.attention_backends import default_choice
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.model.loss import TrainingBatch
from trainer.proof.attention_trials import AttentionTrial, pick, try_attention
from trainer.proof.model_checks import with_engram
from trainer.train.determinism import ENVIRONMENT_VARIABLES, broken_promises, make_deterministic

_SEED = 42


@dataclass(frozen=True)
class Trial:
    """Trial of one operation: forward and backward run twice and compared bit by bit."""

    device: str
    dtype: str
    piece: str
    is_repeatable: bool
    found: str


@dataclass(frozen=True)
class Diagnosis:
    """Result of all trials. `is_promised` is True if the environment is right and every operation repeatable."""

    is_promised: bool
    settings: dict[str, str]
    environment: dict[str, object]
    broken_promises: list[str]
    trials: list[Trial]
    attention: list[AttentionTrial]
    attention_picks: dict[str, str | None]
    breakers: tuple[str, ...]


BREAKERS = (
    "another processor model, GPU architecture, system, torch, CUDA or cuDNN: other bits, refused on a resume",
    "another number of threads (the recipe's num_threads): sums are split otherwise",
    "torch imported before the environment was right: logged and recorded in the result",
    "another logical micro-batch or batch size: the numbers fork, and that is recorded",
    "an operation that adds in the order in which threads finish: strict mode raises if torch knows of it",
)


def diagnose() -> Diagnosis:
    """Try every operation on each device of this machine."""
    num_threads = min(2, os.cpu_count() or 1)
    make_deterministic(_SEED, num_threads)
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    trials = [trial for device in devices for trial in _trials(device)]
    ways = [trial for device in devices for trial in try_attention(device)]
    broken = broken_promises()
    defaults = {(devices[-1], dtype, default_choice(devices[-1], dtype)) for dtype in Precision}
    is_default_good = all(trial.is_good for trial in ways if (trial.device, trial.dtype, trial.choice) in defaults)
    return Diagnosis(
        is_promised=not broken and is_default_good and all(trial.is_repeatable for trial in trials),
        settings=_settings(),
        environment=describe_environment(devices[-1], num_threads),
        broken_promises=broken,
        trials=trials,
        attention=ways,
        attention_picks={dtype.value: pick(ways, dtype) for dtype in Precision},
        breakers=BREAKERS,
    )


def lines(found: Diagnosis) -> Iterator[str]:
    """Yield the diagnosis as lines of text."""
    yield from (f"set      {name} = {value}" for name, value in found.settings.items())
    yield from (f"machine  {name} = {value}" for name, value in found.environment.items())
    for trial in found.trials:
        yield f"tried    {trial.device} {trial.dtype:<8} {trial.piece:<16} {trial.found}"
    for way in found.attention:
        yield f"tried    {way.device} {way.dtype:<8} attention {way.choice:<6} {way.found}"
    for dtype, choice in found.attention_picks.items():
        yield f"fastest  {dtype:<8} {f'--attention {choice}' if choice else 'no attention backend is good'}"
    yield from (f"breaks   {text}" for text in found.breakers)
    yield from (f"broken   {text}" for text in found.broken_promises)
    yield "promised: two runs and any resume are bit-identical here" if found.is_promised else "NOT PROMISED, see above"


def _settings() -> dict[str, str]:
    names = [*ENVIRONMENT_VARIABLES, *CACHE_FOLDERS, *SWITCHES]
    settings = {name: os.environ.get(name, "not set") for name in names}
    return settings | {
        "deterministic algorithms": "strict" if torch.are_deterministic_algorithms_enabled() else "off",
        "fill_uninitialized_memory": str(torch.utils.deterministic.fill_uninitialized_memory),
        "float32 matmul precision": torch.get_float32_matmul_precision(),
        "cudnn.benchmark": str(torch.backends.cudnn.benchmark),
        "threads": str(torch.get_num_threads()),
        "hash randomization": "off" if not sys.flags.hash_randomization else "on",
    }


def _trials(device: str) -> Iterator[Trial]:
    for dtype in (torch.float32, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        for piece, run in _PIECES.items():
            yield _try(device, name, piece, partial(_gradients, device, dtype, run))
    for piece, layer in _BLOCKS.items():
        yield _try(device, "float32", piece, partial(_block_gradients, device, layer))


def _try(device: str, name: str, piece: str, run: Callable[[], list[Tensor]]) -> Trial:
    try:
        is_equal = all(torch.equal(_bytes(one), _bytes(other)) for one, other in zip(run(), run(), strict=True))
    except RuntimeError as error:
        is_unused = piece in _UNUSED
        why = "refused by strict mode, and not used here" if is_unused else "refused"
        return Trial(device, name, piece, is_unused, f"{why}: {str(error).splitlines()[0][:80]}")
    return Trial(device, name, piece, is_equal, "the same bits twice" if is_equal else "OTHER BITS the second time")


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _gradients(device: str, dtype: torch.dtype, run: Callable[[list[Tensor]], Tensor]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(_SEED)
    inputs = [torch.randn(256, 256, generator=generator).to(device, dtype).requires_grad_() for _ in range(3)]
    output = run(inputs)
    output.float().square().sum().backward()
    return [output.detach(), *(each.grad for each in inputs if each.grad is not None)]


def _block_gradients(device: str, layer: int) -> list[Tensor]:
    """Compute loss and gradients of a model with one layer of the smallest preset, its embedding, norms and chunked loss."""
    whole = preset("tiny")
    config = whole.model_copy(update={"pattern": whole.pattern[layer], "depth": 1})
    config = with_engram(config, *({layer} & set(whole.attention.engram.layers)))
    model = HybridModel(config, 256)
    initialize(model, _SEED)
    model.to(device)
    generator = torch.Generator().manual_seed(_SEED)
    ids = torch.randint(256, (4, 129), generator=generator).to(device)
    documents = (torch.arange(128, device=device) // 50).expand(4, -1).to(torch.int32)
    loss, _ = model.loss(TrainingBatch(ids[:, :-1], ids[:, 1:], torch.ones_like(ids[:, 1:]).bool(), documents))
    loss.backward()  # type: ignore[no-untyped-call]  # torch's own signature
    return [loss.detach(), *(each.grad for each in model.parameters() if each.grad is not None)]


def _ids(inputs: list[Tensor], count: int = 256, number: int = 5) -> Tensor:
    return torch.arange(count, device=inputs[0].device) % number


_PIECES: dict[str, Callable[[list[Tensor]], Tensor]] = {
    "gemm": lambda inputs: inputs[0] @ inputs[1],
    "attention": lambda inputs: functional.scaled_dot_product_attention(
        *(each.view(2, 2, 64, 256) for each in inputs), is_causal=True
    ),
    "embedding": lambda inputs: functional.embedding(_ids(inputs, 2048, 7), inputs[0]),
    "index_add": lambda inputs: torch.zeros_like(inputs[0]).index_add(0, _ids(inputs), inputs[1]),
    "index_put": lambda inputs: torch.zeros_like(inputs[0]).index_put((_ids(inputs),), inputs[1], accumulate=True),
    "gather": lambda inputs: inputs[0].gather(1, _ids(inputs).expand(256, -1)),
    "cumsum": lambda inputs: inputs[0].cumsum(0),
    "sort": lambda inputs: torch.sort(inputs[0], dim=-1, stable=True).values,
    "log-sum-exp": lambda inputs: torch.logsumexp(inputs[0] @ inputs[1], dim=-1),
}
_UNUSED = frozenset({"cumsum"})
"""Not repeatable on floating-point numbers: a CUDA device adds them in no fixed order. Ranks of slots are integers."""
_BLOCKS = {"block A, Engram": 0, "block E": 1, "block M": 2, "block R": 3}
"""Layers of the smallest preset, each tried in its own model."""
