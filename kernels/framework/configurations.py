"""Launch configurations: warps and stages by kernel, shape class and GPU architecture. Committed, never autotuned.

Autotuning at run time picks by timing, so two runs could add in different orders; a table cannot. The entries below hold for
any GPU; no GPU has measured them: they were chosen by the registers and spills that the compiler counts for sm_90. What
`python -m kernels tune` has measured is in `configurations.json` and has precedence on that architecture. Both are part of
the environment of a run, since warps and stages decide the order of sums.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import torch


@dataclass(frozen=True, slots=True)
class Configuration:
    """Warps of a program and stages of its loops' loads. `is_measured` says whether a GPU chose it."""

    num_warps: int
    num_stages: int = 1
    is_measured: bool = False


Key = tuple[str, str, int]  # kernel, shape class, SM
ANY_GPU = 0
MEASURED_PATH = Path(__file__).with_name("configurations.json")


def _for_tiles(*kernels: str) -> dict[Key, Configuration]:
    """Return configurations of about 16 elements a thread, 4 to 16 warps; three stages are the compiler's default."""
    warps = {"tile<=2048": 4, "tile<=4096": 8, "tile>4096": 16}
    return {(kernel, shape, ANY_GPU): Configuration(warps[shape], 3) for kernel in kernels for shape in warps}


TABLE: dict[Key, Configuration] = {
    # A state of 128 doubles the tiles of one of 64.
    ("mamba3_scan.turns", "any", ANY_GPU): Configuration(4),
    ("mamba3_scan.carry", "any", ANY_GPU): Configuration(4),
    ("mamba3_scan.turned_vectors", "any", ANY_GPU): Configuration(4),
    ("mamba3_scan.state", "state<=64", ANY_GPU): Configuration(4),
    ("mamba3_scan.state", "state>64", ANY_GPU): Configuration(8),
    ("mamba3_scan.output", "state<=64", ANY_GPU): Configuration(8),
    ("mamba3_scan.output", "state>64", ANY_GPU): Configuration(8),
    ("mamba3_scan.state", "float32", ANY_GPU): Configuration(8),
    ("mamba3_scan.output", "float32", ANY_GPU): Configuration(8),
    ("mamba3_scan.query_gradient", "float32", ANY_GPU): Configuration(8),
    ("mamba3_scan.key_gradient", "float32", ANY_GPU): Configuration(8),
    ("mamba3_scan.vector_gradient", "float32", ANY_GPU): Configuration(8),
    ("mamba3_scan.query_gradient", "state<=64", ANY_GPU): Configuration(8),
    ("mamba3_scan.key_gradient", "state<=64", ANY_GPU): Configuration(8),
    ("mamba3_scan.vector_gradient", "state<=64", ANY_GPU): Configuration(8),
    ("mamba3_scan.query_gradient", "state>64", ANY_GPU): Configuration(8),
    ("mamba3_scan.key_gradient", "state>64", ANY_GPU): Configuration(8),
    ("mamba3_scan.vector_gradient", "state>64", ANY_GPU): Configuration(8),
    ("mamba3_scan.turn_gradient", "any", ANY_GPU): Configuration(4),
    ("m2rnn.forward", "any", ANY_GPU): Configuration(1),
    ("m2rnn.backward", "any", ANY_GPU): Configuration(1),
    ("causal_convolution.forward", "any", ANY_GPU): Configuration(4, 3),
    ("causal_convolution.backward", "any", ANY_GPU): Configuration(4, 3),
    ("chunked_cross_entropy.rows", "any", ANY_GPU): Configuration(8, 3),
    ("engram_lookup.forward", "any", ANY_GPU): Configuration(4, 3),
    ("engram_lookup.sum_runs", "any", ANY_GPU): Configuration(4, 3),
    ("tensor_digest.nodes", "any", ANY_GPU): Configuration(8, 3),
    **_for_tiles("rms_norm.forward", "rms_norm.backward", "gated_rms_norm.forward", "gated_rms_norm.backward"),
    ("expert_product.rows", "half", ANY_GPU): Configuration(8, 3),
    ("expert_product.rows", "small half", ANY_GPU): Configuration(4, 3),
    ("expert_product.rows", "float32", ANY_GPU): Configuration(4, 3),
    ("expert_product.weights", "half", ANY_GPU): Configuration(8, 3),
    ("expert_product.weights", "small half", ANY_GPU): Configuration(4, 3),
    ("expert_product.weights", "float32", ANY_GPU): Configuration(4, 3),
    **_for_tiles("expert_dispatch.forward", "expert_dispatch.backward"),
    **_for_tiles("expert_combine.forward", "expert_combine.results_backward", "expert_combine.weights_backward"),
}


def read_measured(path: Path) -> dict[Key, Configuration]:
    """Return the entries of a table that `python -m kernels tune` wrote; no entries if there is no file."""
    rows = json.loads(path.read_text(encoding="utf-8"))["configurations"] if path.exists() else []
    return {
        (row["kernel"], row["shape_class"], row["sm"]): Configuration(row["num_warps"], row["num_stages"], True)
        for row in rows
    }


def is_table(path: Path) -> bool:
    """Return whether a file is a table of measured configurations and nothing more, or can be made in a folder that is there."""
    try:
        if not path.exists():
            return path.parent.is_dir()
        if not path.is_file():
            return False
        table = json.loads(path.read_bytes())
        read_measured(path)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False
    return set(table) == {"measured_on", "configurations"} and isinstance(table["measured_on"], dict)


MEASURED = read_measured(MEASURED_PATH)
_trials: dict[tuple[str, str], Configuration] = {}
_requests: set[tuple[str, str]] = set()


def state_class(state_size: int, dtype: torch.dtype) -> str:
    """Return the shape class of a scan: by its state size, and all of float32 in one, whose products are unrolled."""
    if dtype == torch.float32:
        return "float32"
    return "state<=64" if state_size <= 64 else "state>64"


def tile_class(num_elements: int) -> str:
    """Return the shape class of a kernel over rows: by the elements of a program's tile, a power of two."""
    if num_elements <= 2048:
        return "tile<=2048"
    return "tile<=4096" if num_elements <= 4096 else "tile>4096"


def launch_options(kernel: str, shape_class: str, device: torch.device) -> dict[str, int]:
    """Return `num_warps` and `num_stages` for a kernel: the entry of this GPU's architecture, or the one for any."""
    _requests.add((kernel, shape_class))
    key = (kernel, shape_class, architecture_of(device))
    entry = _trials.get((kernel, shape_class)) or MEASURED.get(key) or TABLE[kernel, shape_class, ANY_GPU]
    return {"num_warps": entry.num_warps, "num_stages": entry.num_stages}


@cache  # asked at each launch
def architecture_of(device: torch.device) -> int:
    """Return 90 for compute capability 9.0; `ANY_GPU` for a CPU."""
    if device.type != "cuda":
        return ANY_GPU
    major, minor = torch.cuda.get_device_capability(device)
    return 10 * major + minor


@contextmanager
def trial(entries: Mapping[tuple[str, str], Configuration]) -> Iterator[set[tuple[str, str]]]:
    """Launch with these entries in the block, in all threads; yield the (kernel, shape class) that were launched.

    A plain global: autograd runs a backward pass on a GPU in a thread of its own, which sees no context variable.
    """
    _trials.update(entries)
    _requests.clear()
    try:
        yield _requests
    finally:
        _trials.clear()


def configuration_manifest() -> dict[str, dict[str, object]]:
    """Return the whole table as plain values, for the environment of a run."""
    entries = {**TABLE, **MEASURED}
    return {f"{kernel}/{shape}/sm{sm}": asdict(entry) for (kernel, shape, sm), entry in sorted(entries.items())}
