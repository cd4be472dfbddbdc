"""Launches of the Mamba-3 scan's Triton kernels: buffers, grids and the order of the passes.

Shapes: see `mamba3_scan`. Buffers of states are padded to the tiles' sizes, so that no load of them needs a mask.
"""

from typing import Any

import torch
from torch import Tensor

from kernels.framework.backend import SMALLEST_TILE, is_interpreting, tl
from kernels.framework.configurations import launch_options, state_class
from kernels.mamba3_scan.chunks_torch import ScanArguments
from kernels.mamba3_scan.triton_backward import (
    span_key_gradient_kernel,
    span_query_gradient_kernel,
    turn_gradient_kernel,
    vector_gradient_kernel,
)
from kernels.mamba3_scan.triton_forward import (
    carry_kernel,
    chunk_turns_kernel,
    span_output_kernel,
    span_state_kernel,
    turned_vectors_kernel,
)

LONGEST_CHUNK, LONGEST_FLOAT32_CHUNK = 32, 16
LONGEST_WALKED_CHUNK = 64
"""Of the walks that keep no gradient of a chunk beside the state, in bfloat16: half as many steps."""
CARRY_BLOCK, TURN_BLOCK = 512, 16
SPAN, GROUP = 16, 8
"""Chunks that a program walks with the state in registers, so that outside there is one state for so many chunks; and heads whose
gradients of queries and keys one program sums."""


def tile_length(chunk_size: int, dtype: torch.dtype) -> int:
    """Return the chunk that the kernels use: a power of two of at least 16. The scan's meaning does not depend on it.

    Registers limit it: those of a program hold a state, and of 64 tokens not all products beside it. Float32 products run on no
    tensor core: each is unrolled, and at 32 tokens the compiler spills what it unrolls.
    """
    longest = LONGEST_CHUNK if dtype == torch.bfloat16 else LONGEST_FLOAT32_CHUNK
    return min(max(_power_of_2(chunk_size), SMALLEST_TILE), longest)


def launch_scan_forward(arguments: ScanArguments, chunk_size: int) -> tuple[Tensor, Tensor]:
    """Compute y (B, T, H, P) and the phases (B, C, H, S) that enter each chunk."""
    launch = _Launch(arguments, chunk_size)
    phases_BCHS = launch.phases()
    vectors = launch.turned_vectors(phases_BCHS)
    states = launch.states(vectors, None)
    y_BTHP = torch.empty_like(launch.arguments.values_BTHP)
    launch.run(
        span_output_kernel, "output", *vectors, *launch.of_heads, states, y_BTHP, **launch.walked(), **launch.tiles
    )
    return y_BTHP, phases_BCHS


def launch_scan_backward(
    grad_BTHP: Tensor, arguments: ScanArguments, phases_BCHS: Tensor, chunk_size: int
) -> tuple[Tensor, ...]:
    """Return the gradients of the nine floating-point arguments. The states are computed again from the phases."""
    launch = _Launch(arguments, chunk_size)
    inputs, grad_BTHP = launch.arguments, grad_BTHP.contiguous()
    vectors = launch.turned_vectors(phases_BCHS)
    states = launch.states(vectors, None)
    leaving = launch.states(vectors, grad_BTHP)
    # In float32: gradients of velocities are small differences of what these hold.
    of_queries, of_keys = (torch.empty_like(each, dtype=torch.float32) for each in vectors)
    grad_values = torch.empty_like(inputs.values_BTHP)
    grad_sums, *of_scalars = (torch.empty_like(inputs.step_sizes_BTH) for _ in range(4))
    entering = launch.empty_states(launch.num_chunks, grad_BTHP.dtype)
    launch.run(
        span_query_gradient_kernel, "query_gradient", *vectors, *launch.of_heads, states, grad_BTHP,
        of_queries, grad_sums, entering, **launch.sizes, **launch.tiles,
    )  # fmt: skip
    launch.run(
        span_key_gradient_kernel, "key_gradient", *vectors, *launch.of_heads, entering, leaving, grad_BTHP, grad_sums,
        of_keys, grad_values, *of_scalars, **launch.sizes, **launch.tiles,
    )  # fmt: skip
    *grad_vectors, turns, turns_beyond = launch.vector_gradients(vectors, (of_queries, of_keys), phases_BCHS)
    gradients = (*grad_vectors, grad_values, *launch.scalar_gradients(turns, turns_beyond, of_scalars))
    return tuple(grad.to(argument.dtype) for grad, argument in zip(gradients, arguments[:9], strict=True))


class _Launch:
    """The arguments as the kernels read them, contiguous and with scalars in float32, and the sizes of all grids."""

    def __init__(self, arguments: ScanArguments, chunk_size: int) -> None:
        vectors = [tensor.contiguous() for tensor in arguments[:5]]
        scalars = [tensor.float().contiguous() for tensor in arguments[5:9]]
        self.arguments = ScanArguments(*vectors, *scalars, arguments.document_index_BT.contiguous())
        self.num_rows, num_tokens, num_heads, head_size = arguments.values_BTHP.shape
        state_size = arguments.queries_BTN.shape[-1]
        self.chunk_size = _power_of_2(chunk_size)
        self.length = tile_length(chunk_size, arguments.values_BTHP.dtype)
        self.num_chunks = _quotient(num_tokens, self.length)
        self.num_spans = _quotient(self.num_chunks, SPAN)
        self.walk = {"T": num_tokens, "H": num_heads, "CHUNKS": self.num_chunks, "LENGTH": self.length}
        self.sizes = {
            **self.walk,
            "SPAN": SPAN,
            "P": head_size,
            "N": state_size,
        }
        self.num_pairs = arguments.velocities_BTS.shape[-1]
        is_half = arguments.values_BTHP.dtype == torch.bfloat16 and not is_interpreting()
        self.vector_dtype = torch.bfloat16 if is_half else torch.float32
        self.tiles: dict[str, Any] = {
            "HEAD": max(_power_of_2(head_size), SMALLEST_TILE),
            "STATE": max(_power_of_2(state_size), SMALLEST_TILE),
            "DOT_TYPE": tl.bfloat16 if is_half else tl.float32,
        }

    @property
    def of_heads(self) -> tuple[Tensor, ...]:
        """Inputs of each head beside its vectors (values, step sizes, decay rates, current shares), and the documents."""
        inputs = self.arguments
        return (*inputs[4:8], inputs.document_index_BT)

    def walked(self) -> dict[str, Any]:
        """Return the sizes of a walk over spans that keeps no gradient: its chunks may be longer."""
        is_half = self.arguments.values_BTHP.dtype == torch.bfloat16
        longer = min(self.chunk_size, LONGEST_WALKED_CHUNK, SPAN * self.length) if is_half else self.length
        length = max(longer, self.length)
        chunks = _quotient(self.sizes["T"], length)
        return {**self.sizes, "LENGTH": length, "CHUNKS": chunks, "SPAN": SPAN * self.length // length}

    def run(self, kernel: Any, name: str, *pointers: Tensor, **constants: Any) -> None:
        """Launch one program for each span, head and row."""
        options = launch_options(
            f"mamba3_scan.{name}",
            state_class(self.tiles["STATE"], self.arguments.values_BTHP.dtype),
            pointers[0].device,
        )
        kernel[(self.num_spans, self.sizes["H"], self.num_rows)](*pointers, **constants, **options)

    def phases(self) -> Tensor:
        """Return the phases (B, C, H, S) that enter each chunk."""
        steps, velocities = self.arguments.step_sizes_BTH, self.arguments.velocities_BTS
        added_BCHS = steps.new_empty((self.num_rows, self.num_chunks, self.sizes["H"], self.num_pairs))
        options = launch_options("mamba3_scan.turns", "any", steps.device)
        chunk_turns_kernel[(self.num_chunks, self.sizes["H"], self.num_rows)](
            steps, velocities, self.arguments.document_index_BT, added_BCHS,
            **self.walk, S=self.num_pairs, PAIRS=self.tiles["STATE"] // 2, **options,
        )  # fmt: skip
        return self.carried(added_BCHS, None, reverse=False, is_phase=True)

    def turned_vectors(self, phases_BCHS: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys (B, T, H, N) with their biases, turned, in the dtype of their products."""
        inputs = self.arguments
        shape = (*inputs.step_sizes_BTH.shape, self.sizes["N"])
        turned = tuple(phases_BCHS.new_empty(shape, dtype=self.vector_dtype) for _ in range(2))
        options = launch_options("mamba3_scan.turned_vectors", "any", phases_BCHS.device)
        turned_vectors_kernel[(self.num_chunks, self.sizes["H"], self.num_rows)](
            *inputs[:4], inputs.step_sizes_BTH, *inputs[8:], phases_BCHS, *turned,
            **self.walk, N=self.sizes["N"], S=self.num_pairs, STATE=self.tiles["STATE"], **options,
        )  # fmt: skip
        return turned[0], turned[1]

    def empty_states(self, num_places: int, dtype: torch.dtype) -> Tensor:
        """Return a buffer for a state of each head at so many places of a row."""
        shape = (self.num_rows, num_places, self.sizes["H"], self.tiles["HEAD"], self.tiles["STATE"])
        return self.arguments.step_sizes_BTH.new_empty(shape, dtype=dtype)

    def states(self, vectors: tuple[Tensor, Tensor], grad_BTHP: Tensor | None) -> Tensor:
        """Return the states that enter each span or, with a gradient of y, the gradients of the states that leave it."""
        queries, keys = vectors
        is_gradient = grad_BTHP is not None
        sources = (keys, self.arguments.values_BTHP) if grad_BTHP is None else (queries, grad_BTHP)
        added = self.empty_states(self.num_spans, torch.float32)
        factors = added.new_empty(added.shape[:3])
        constants = {**self.walked(), **self.tiles, "OF_GRADIENT": is_gradient}
        self.run(span_state_kernel, "state", *sources, *self.of_heads[1:], added, factors, **constants)
        return self.carried(added, factors, reverse=is_gradient)

    def carried(self, added: Tensor, factors: Tensor | None, reverse: bool, is_phase: bool = False) -> Tensor:
        """Walk over chunks or spans, for tensors (B, C, H, ...)."""
        entering = torch.empty_like(added)
        width, num_steps = added[0, 0, 0].numel(), added.shape[1]
        block = min(_power_of_2(width), CARRY_BLOCK)
        options = launch_options("mamba3_scan.carry", "any", added.device)
        length = self.length if factors is None else self.length * SPAN
        walk = self.walk | {"CHUNKS": num_steps, "LENGTH": length}
        carry_kernel[(_quotient(width, block), self.sizes["H"], self.num_rows)](
            added, added if factors is None else factors, entering, self.arguments.document_index_BT,
            **walk, WIDTH=width, HAS_FACTOR=factors is not None, IS_PHASE=is_phase, REVERSE=reverse,
            BLOCK=block, **options,
        )  # fmt: skip
        return entering

    def vector_gradients(
        self, vectors: tuple[Tensor, Tensor], of_vectors: tuple[Tensor, Tensor], phases_BCHS: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the gradients of queries, keys and their biases, of the turns (B, T, H, S) within the chunk and beyond it.

        `of_vectors` are the gradients of the turned vectors.
        """
        inputs, num_heads, num_groups = self.arguments, self.sizes["H"], _quotient(self.sizes["H"], GROUP)
        num_states, num_pairs = inputs.queries_BTN.shape[-1], self.num_pairs
        queries, keys = (
            phases_BCHS.new_empty((*inputs.queries_BTN.shape[:2], num_groups, num_states)) for _ in range(2)
        )
        query_biases, key_biases = (
            phases_BCHS.new_empty((self.num_rows, self.num_chunks, num_heads, num_states)) for _ in range(2)
        )
        turns_BTHS = phases_BCHS.new_empty((*inputs.step_sizes_BTH.shape, num_pairs))
        added_BCHS = torch.empty_like(phases_BCHS)
        options = launch_options(
            "mamba3_scan.vector_gradient",
            state_class(self.tiles["STATE"], inputs.values_BTHP.dtype),
            phases_BCHS.device,
        )
        vector_gradient_kernel[(self.num_chunks, num_groups, self.num_rows)](
            *vectors, inputs.step_sizes_BTH, *inputs[8:], phases_BCHS, *of_vectors,
            queries, keys, query_biases, key_biases, turns_BTHS, added_BCHS,
            **self.walk, N=num_states, S=num_pairs, GROUP=GROUP, STATE=self.tiles["STATE"], **options,
        )  # fmt: skip
        sums = (queries.sum(2), keys.sum(2), query_biases.sum((0, 1)), key_biases.sum((0, 1)))
        return *sums, turns_BTHS, self.carried(added_BCHS, None, reverse=True)

    def scalar_gradients(self, turns_BTHS: Tensor, beyond_BCHS: Tensor, of_scalars: list[Tensor]) -> list[Tensor]:
        """Return the gradients of D, A, l and the velocities, from those of the turns and of a = D A, r and g."""
        gradients = [torch.empty_like(each) for each in self.arguments[5:9]]
        options = launch_options("mamba3_scan.turn_gradient", "any", turns_BTHS.device)
        turn_gradient_kernel[(_quotient(self.walk["T"], TURN_BLOCK), self.num_rows)](
            *self.arguments[5:], turns_BTHS, beyond_BCHS, *of_scalars, gradients[-1], *gradients[:-1],
            **self.walk, S=self.num_pairs, PAIRS=self.tiles["STATE"] // 2, BLOCK=TURN_BLOCK, **options,
        )  # fmt: skip
        return gradients


def _quotient(number: int, divisor: int) -> int:
    """Return the quotient, rounded up. Triton's own functions are made for kernels too, and take microseconds a call."""
    return (number + divisor - 1) // divisor


def _power_of_2(number: int) -> int:
    """Return the least power of two that is not below a number."""
    return 1 << (number - 1).bit_length()
