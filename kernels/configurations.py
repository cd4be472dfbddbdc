"""How each kernel is launched: warps and stages by kernel, shape class and GPU architecture. Committed, never autotuned.

Autotuning at run time picks by timing, so two runs could add in different orders; a table cannot. An entry that no GPU
has measured says so: it was chosen by the registers and spills that the compiler counts for sm_90. The table is part of
the kernel manifest, since warps and stages decide the order of sums.
"""

from dataclasses import asdict, dataclass

import torch


@dataclass(frozen=True, slots=True)
class Configuration:
    """Warps of a program and stages of its loops' loads. `is_measured` says whether a GPU chose it."""

    num_warps: int
    num_stages: int = 1
    is_measured: bool = False


ANY_GPU = 0
TABLE: dict[tuple[str, str, int], Configuration] = {
    # (kernel, shape class, SM). A state of 128 doubles the tiles of one of 64.
    ("mamba3_scan.turns", "any", ANY_GPU): Configuration(4),
    ("mamba3_scan.carry", "any", ANY_GPU): Configuration(4),
    ("mamba3_scan.state", "state<=64", ANY_GPU): Configuration(4),
    ("mamba3_scan.state", "state>64", ANY_GPU): Configuration(8),
    ("mamba3_scan.output", "state<=64", ANY_GPU): Configuration(4),
    ("mamba3_scan.output", "state>64", ANY_GPU): Configuration(8),
    ("mamba3_scan.state", "float32", ANY_GPU): Configuration(8),
    ("mamba3_scan.output", "float32", ANY_GPU): Configuration(8),
    ("mamba3_scan.gradient", "float32", ANY_GPU): Configuration(8),
    ("mamba3_scan.gradient", "state<=64", ANY_GPU): Configuration(8),
    ("mamba3_scan.gradient", "state>64", ANY_GPU): Configuration(8),
    ("mamba3_scan.turn_gradient", "any", ANY_GPU): Configuration(4),
    ("m2rnn.forward", "any", ANY_GPU): Configuration(4),
    ("m2rnn.backward", "any", ANY_GPU): Configuration(4),
}


def state_class(state_size: int, dtype: torch.dtype) -> str:
    """The shape class of a scan: by its state size, and all of float32 in one, whose products are unrolled."""
    if dtype == torch.float32:
        return "float32"
    return "state<=64" if state_size <= 64 else "state>64"


def launch_options(kernel: str, shape_class: str, device: torch.device) -> dict[str, int]:
    """`num_warps` and `num_stages` for a kernel: the entry of this GPU's architecture, or the one for any."""
    architecture = ANY_GPU
    if device.type == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        architecture = 10 * major + minor
    entry = TABLE.get((kernel, shape_class, architecture)) or TABLE[kernel, shape_class, ANY_GPU]
    return {"num_warps": entry.num_warps, "num_stages": entry.num_stages}


def configuration_manifest() -> dict[str, dict[str, object]]:
    """The whole table as plain values, for the kernel manifest of a training."""
    return {f"{kernel}/{shape}/sm{sm}": asdict(entry) for (kernel, shape, sm), entry in sorted(TABLE.items())}
