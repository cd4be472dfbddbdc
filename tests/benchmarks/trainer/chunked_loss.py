"""The chunked loss beside torch's own over all logits: time of forward and backward, and memory beyond the gradients.

On the CPU; `python -m kernels` compares the two on a GPU. `python -m tests.benchmarks.trainer.chunked_loss WAY` prints the memory
of one way.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from kernels.chunked_cross_entropy import SPEC, chunked_cross_entropy, cross_entropy_of_all_logits
from kernels.framework.spec import ShapeCase
from tests.benchmarks.figure import Figure

CASE = ShapeCase((2048, 256, 16_384, 64, 90), "the eager way holds about 400 MB")
NUM_TURNS = 3
MAX_TIME, MAX_MEMORY = 1.1, 0.1
WAYS: dict[str, Callable[..., Tensor]] = {"chunked": chunked_cross_entropy, "eager": cross_entropy_of_all_logits}


def loss() -> list[Figure]:
    """Time of one core and extra memory, each over that of all logits at once."""
    torch.set_num_threads(1)
    arguments = _arguments()
    seconds = dict.fromkeys(WAYS, float("inf"))
    for _ in range(NUM_TURNS):
        for name, way in WAYS.items():
            started = time.process_time()
            _forward_and_backward(way, arguments)
            seconds[name] = min(seconds[name], time.process_time() - started)
    megabytes = {name: _memory_of(name) for name in WAYS}
    time_ratio, memory_ratio = (made["chunked"] / made["eager"] for made in (seconds, megabytes))
    return [
        _figure("loss", seconds, "s of one core, 2,048 tokens, 16,384 entries", time_ratio, MAX_TIME),
        _figure("loss/memory", megabytes, "MB beyond inputs and gradients", memory_ratio, MAX_MEMORY),
    ]


def _figure(name: str, made: dict[str, float], unit: str, ratio: float, most: float) -> Figure:
    value, peer_value = round(made["chunked"], 3), round(made["eager"], 3)
    reach = f"<= {most:g} of the peer's"
    return Figure(name, value, unit, reach, ratio <= most, "torch, all logits", peer_value, round(ratio, 3))


def _arguments() -> tuple:
    sampled = SPEC.sample_inputs(torch.Generator().manual_seed(42), torch.float32, CASE)
    return tuple(
        each.requires_grad_() if torch.is_tensor(each) and each.is_floating_point() else each for each in sampled
    )


def _forward_and_backward(way: Callable[..., Tensor], arguments: tuple) -> None:
    for argument in arguments:
        if torch.is_tensor(argument):
            argument.grad = None
    way(*arguments).backward()


def _memory_of(name: str) -> float:
    line = [sys.executable, "-m", "tests.benchmarks.trainer.chunked_loss", name]
    # A freed block goes back at once, and is not kept for the next one.
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    return float(subprocess.run(line, capture_output=True, text=True, check=True, env=environment).stdout)


def _print_memory(name: str) -> None:
    """Peak of this process over what it held with inputs and gradients in place, MB."""
    torch.set_num_threads(1)
    sampled = SPEC.sample_inputs(torch.Generator().manual_seed(1), torch.float32, ShapeCase((8, 8, 16, 4, 90), ""))
    _forward_and_backward(WAYS[name], (sampled[0].requires_grad_(), sampled[1].requires_grad_(), *sampled[2:]))
    arguments = _arguments()
    gradients = [torch.ones_like(each) for each in arguments if torch.is_tensor(each) and each.is_floating_point()]
    before = _peak_megabytes()
    del gradients
    _forward_and_backward(WAYS[name], arguments)
    print(_peak_megabytes() - before)


def _peak_megabytes() -> float:
    # Not getrusage: its peak outlives exec, so that a child begins with its parent's.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    _print_memory(sys.argv[1])
