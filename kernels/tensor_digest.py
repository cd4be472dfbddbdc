"""Digest of a tensor's bytes: a tree of 64-bit mixes, the same on a GPU and on a CPU, made where the tensor is.

    m(x) = y xor (y >> 29),    y = z C_2,    z = (x C_1) xor ((x C_1) >> 32)
    node of up to 4,096 words = m(sum_i m(w_i xor (i + 1) C_0)),    i from 0 within the node

Words are 64 bits, little-endian, the last one filled with zeros. The nodes of one level are the words of the next, until one is
left. Sums are modulo 2^64, and thus equal in any order. Tensors that differ agree by chance in one case of 2^64; who wants
an agreement can make one, so that this is no signature. How many bytes there are is not in it.

Shapes: N words, K nodes. Source: the constants are those of splitmix64, Steele et al. 2014 (Fast splittable pseudorandom
number generators).
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kernels.framework.backend import runs_kernel, tl, triton
from kernels.framework.configurations import launch_options
from kernels.framework.operation import operation
from kernels.framework.spec import Argument, KernelSpec, ShapeCase

NODE_WORDS, WORD_BYTES = 4096, 8
NODES_AT_ONCE = 8
"""Nodes whose words stay in a processor's cache."""
_PLACE, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_PLACES = np.arange(1, NODE_WORDS + 1, dtype=np.uint64) * np.uint64(_PLACE)


def tensor_digest_reference(words_N: Tensor) -> Tensor:
    """Compute the definition in plain torch, whose whole numbers wrap at 2^64: () int64."""
    while True:
        num_nodes = max(1, -(-len(words_N) // NODE_WORDS))
        places_N = torch.arange(len(words_N), device=words_N.device)
        mixed_N = _mixed(words_N ^ (places_N % NODE_WORDS + 1) * _signed(_PLACE))
        sums_K = words_N.new_zeros(num_nodes).index_add(0, places_N // NODE_WORDS, mixed_N)
        words_N = _mixed(sums_K)
        if num_nodes == 1:
            return words_N.view(())


def _mixed(words: Tensor) -> Tensor:
    words = words * _signed(_FIRST)
    words = (words ^ words >> 32 & 2**32 - 1) * _signed(_SECOND)
    return words ^ words >> 29 & 2**35 - 1


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word


@triton.jit
def _mix(words, FIRST: tl.constexpr, SECOND: tl.constexpr):
    words = words * FIRST
    words = (words ^ (words >> 32)) * SECOND
    return words ^ (words >> 29)


@triton.jit
def _nodes_kernel(
    words_ptr, nodes_ptr, num_words,
    PLACE: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr, NODE: tl.constexpr,
):  # fmt: skip
    """Compute one node."""
    places = tl.arange(0, NODE)
    words_at = tl.program_id(0).to(tl.int64) * NODE + places
    inside = words_at < num_words
    words = tl.load(words_ptr + words_at, mask=inside, other=0).to(tl.uint64, bitcast=True)
    mixed = _mix(words ^ ((places + 1).to(tl.uint64) * PLACE), FIRST, SECOND)
    node = _mix(tl.sum(tl.where(inside, mixed, 0), axis=0), FIRST, SECOND)
    tl.store(nodes_ptr + tl.program_id(0), node.to(tl.int64, bitcast=True))


@operation(lambda words: words.new_empty(()))
def tensor_digest_op(words_N: Tensor) -> Tensor:
    """Run the operation: return the digest () of int64 words, as an int64."""
    # The kernels' dtypes are those of numbers: the same memory as float32.
    if not runs_kernel("tensor_digest", words_N.view(torch.float32)):
        return torch.from_numpy(_digest_in_numpy(words_N.cpu().numpy().view(np.uint64)).view(np.int64)).to(
            words_N.device
        )
    while True:
        num_nodes = max(1, triton.cdiv(words_N.numel(), NODE_WORDS))
        nodes_K = words_N.new_empty(num_nodes)
        _nodes_kernel[(num_nodes,)](
            words_N, nodes_K, words_N.numel(), _PLACE, _FIRST, _SECOND, NODE_WORDS,
            **launch_options("tensor_digest.nodes", "any", words_N.device),
        )  # fmt: skip
        if num_nodes == 1:
            return nodes_K.view(())
        words_N = nodes_K


def _digest_in_numpy(words_N: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the digest () of words."""
    while True:
        num_whole = len(words_N) // NODE_WORDS
        whole = words_N[: num_whole * NODE_WORDS].reshape(num_whole, NODE_WORDS)
        cut = range(0, num_whole, NODES_AT_ONCE)
        parts = [whole[first : first + NODES_AT_ONCE] for first in cut]
        if num_whole * NODE_WORDS < max(1, len(words_N)):
            parts.append(words_N[None, num_whole * NODE_WORDS :])
        sums = [_mix_in_numpy(part ^ _PLACES[: part.shape[1]]).sum(axis=1, dtype=np.uint64) for part in parts]
        words_N = _mix_in_numpy(np.concatenate(sums))
        if len(words_N) == 1:
            return words_N.reshape(())


def _mix_in_numpy(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Compute the mixes of words, over them."""
    words *= np.uint64(_FIRST)
    words ^= words >> np.uint64(32)
    words *= np.uint64(_SECOND)
    words ^= words >> np.uint64(29)
    return words


def tensor_digest(tensor: Tensor) -> int:
    """Return the digest of a tensor's bytes in their order, a number of 64 bits. Only that number leaves the device."""
    values = tensor.detach().contiguous().view(-1)
    num_missing = -values.nbytes % WORD_BYTES
    if num_missing or values.storage_offset() * values.element_size() % WORD_BYTES:
        values = torch.cat((values.view(torch.uint8), values.new_zeros(num_missing, dtype=torch.uint8)))
    return int(tensor_digest_op(values.view(torch.int64))) % 2**64


def _sample_inputs(generator: torch.Generator, dtype: torch.dtype, case: ShapeCase) -> tuple[Argument, ...]:
    """Draw words of all 64 bits; the dtype does not matter."""
    least, most = torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max
    return (torch.randint(least, most, case.sizes, generator=generator, device=generator.device),)


SPEC = KernelSpec(
    name="tensor_digest",
    reference=tensor_digest_reference,
    op=tensor_digest_op,
    sample_inputs=_sample_inputs,
    dtypes=(torch.bfloat16,),
    is_differentiable=False,
    cases=(
        ShapeCase((5,), "less than a node"),
        ShapeCase((4096,), "one whole node"),
        ShapeCase((4097,), "a node of one word, and a second level"),
        ShapeCase((0,), "nothing"),
    ),
    real_cases=(ShapeCase((25_690_112,), "a projection of the widest preset, as a level of experts has it"),),
    tolerance_eps=0.0,
    tolerance_reason="whole numbers: equal",
)
