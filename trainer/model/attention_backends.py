"""Attention backends: requirements of each choice, and the default for a device.

The command line imports this file without torch. `trainer.model.document_attention` computes them, `trainer doctor` tries those
that can run, and `docs/decisions/0012-attention-on-cuda.md` has the reasons.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from pipeline.core.errors import TrainingError
from trainer.config.choices import AttentionChoice, Precision

if TYPE_CHECKING:
    from trainer.model.document_attention import AttentionPlan


class AttentionBackend(NamedTuple):
    """Requirements of a choice. `dtypes` are those of the queries; sizes are of a head."""

    needs: str
    needs_cuda: bool = True
    min_capability: tuple[int, int] = (8, 0)
    dtypes: tuple[Precision, ...] = (Precision.FLOAT32, Precision.BFLOAT16)
    size_multiple: int = 1
    min_size: int = 1
    max_size: int = 256
    counts_documents: bool = False
    needs_triton: bool = False


BACKENDS: dict[AttentionChoice, AttentionBackend] = {
    AttentionChoice.MATH: AttentionBackend(
        needs="nothing; memory for T x T numbers a head and layer",
        needs_cuda=False,
        max_size=2**16,
    ),
    AttentionChoice.FLEX: AttentionBackend(
        needs="a CUDA device, Triton, heads of 16 or more; compiles with Inductor, by itself where nothing else is compiled",
        min_size=16,
        needs_triton=True,
    ),
    AttentionChoice.VARLEN: AttentionBackend(
        needs="a CUDA device of capability 8.0, bfloat16, heads of a multiple of 8 up to 256, and the most documents of a row",
        dtypes=(Precision.BFLOAT16,),
        size_multiple=8,
        min_size=8,
        counts_documents=True,
    ),
}


def default_choice(device: str, dtype: Precision) -> AttentionChoice:
    """Return the default: a choice that is known to repeat its bits and that runs on this device in this dtype.

    On a GPU in bfloat16 that is varlen; in float32, which is for comparisons, and on a CPU it is math.
    """
    is_flash = device.startswith("cuda") and dtype in BACKENDS[AttentionChoice.VARLEN].dtypes
    return AttentionChoice.VARLEN if is_flash else AttentionChoice.MATH


def plan(
    choice: AttentionChoice, head_size: int, dtype: Precision, device: str, num_documents: Callable[[], int]
) -> "AttentionPlan":
    """Return the plan for rows of at most `num_documents`, padding included; the count is computed only if it is needed.

    Raises TrainingError if the choice cannot run: another is never substituted.
    """
    from trainer.model.document_attention import AttentionPlan

    found = missing(choice, head_size, dtype, device)
    if found:
        able = [other for other in BACKENDS if not missing(other, head_size, dtype, device)]
        raise TrainingError(
            f"attention {choice}", found, BACKENDS[choice].needs, f"Train with --attention {' or '.join(able)}."
        )
    if not BACKENDS[choice].counts_documents:
        return AttentionPlan(choice)
    # Few sizes: the backward pass splits its sums by it.
    return AttentionPlan(choice, 1 << (num_documents() - 1).bit_length())


def missing(choice: AttentionChoice, head_size: int, dtype: Precision, device: str) -> str:
    """Return why a choice cannot run here, or an empty string."""
    backend = BACKENDS[choice]
    if backend.needs_cuda and not device.startswith("cuda"):
        return f"the device is {device}"
    if dtype not in backend.dtypes:
        return f"matrix products are {dtype}"
    if head_size % backend.size_multiple or not backend.min_size <= head_size <= backend.max_size:
        return f"heads are of size {head_size}"
    if not backend.needs_cuda:
        return ""
    import torch

    from kernels.framework.backend import HAS_TRITON

    if backend.needs_triton and not HAS_TRITON:
        return "Triton is not installed"
    capability = torch.cuda.get_device_capability(device)
    return f"the GPU has capability {capability[0]}.{capability[1]}" if capability < backend.min_capability else ""
