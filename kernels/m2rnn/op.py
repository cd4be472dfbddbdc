"""M2RNN: a recurrent network whose state is a matrix for each head, nonlinear in time.

    z_t = tanh(h_{t-1} W + k_t v_t^T)        h_t = f_t h_{t-1} + (1 - f_t) z_t        y_t = q_t^T h_t

h starts from zero in each document. Serial in time: the state enters a tanh, so no scan can reorder it. With e = dL/dh_t
(what later tokens send back, plus q_t gy_t^T) and p = (1 - f_t) e (1 - z_t^2):

    dq_t = h_t gy_t        dk_t = p v_t        dv_t = p^T k_t        df_t = sum(e (h_{t-1} - z_t))
    dW += h_{t-1}^T p        dL/dh_{t-1} = f_t e + p W^T

A number that is not finite makes the rest of its document not finite, and no other (but W's gradient sums over all).

Shapes: B rows, T tokens of a row, H heads, K key size, V value size. Source: M2RNN as published for hybrid stacks (2026).
"""

import torch
from torch import Tensor

from kernels.framework.backend import SMALLEST_TILE, UnavailableKernelError, runs_kernel, triton
from kernels.framework.configurations import launch_options
from kernels.framework.operation import empty_like, operation, register_gradients
from kernels.framework.spec import Argument, KernelSpec, ShapeCase
from kernels.m2rnn.scan_torch import RecurrenceArguments, document_starts, recurrence_backward, recurrence_forward
from kernels.m2rnn.triton_scan import backward_kernel, forward_kernel
from kernels.mamba3_scan.op import sample_documents

LONGEST_SEGMENT = 64


def m2rnn(arguments: RecurrenceArguments) -> Tensor:
    """Compute y (B, T, H, V), in the dtype of the values.

    Runs the Triton kernels on a GPU and in the interpreter, a loop of plain torch elsewhere. q, k and v may be float32 or
    bfloat16 (float64 on a CPU); the state is float32 at least. Raises UnavailableKernelError for float16.
    """
    return m2rnn_op(*arguments)[0]


def m2rnn_reference(arguments: RecurrenceArguments) -> Tensor:
    """Compute the definition token by token: the recurrence in the module's docstring. The state has the dtype of W."""
    forget_BTH, transition_HVV, document_index_BT = arguments[3:]
    queries_BTHK, keys_BTHK, values_BTHV = (each.to(transition_HVV.dtype) for each in arguments[:3])
    state_BHKV = torch.zeros_like(keys_BTHK[:, 0, :, :, None] * values_BTHV[:, 0, :, None, :])
    results = []
    for t, is_start_B in enumerate(document_starts(document_index_BT).unbind(1)):
        state_BHKV = torch.where(is_start_B[:, None, None, None], 0, state_BHKV)
        drive_BHKV = keys_BTHK[:, t, :, :, None] * values_BTHV[:, t, :, None, :]
        candidate_BHKV = torch.tanh(torch.einsum("bhkv,hvw->bhkw", state_BHKV, transition_HVV) + drive_BHKV)
        forget_BH11 = forget_BTH[:, t, :, None, None]
        state_BHKV = forget_BH11 * state_BHKV + (1 - forget_BH11) * candidate_BHKV
        results.append(torch.einsum("bhk,bhkv->bhv", queries_BTHK[:, t], state_BHKV))
    return torch.stack(results, dim=1).to(arguments.values_BTHV.dtype)


def _empty_recurrence(*tensors: Tensor) -> tuple[Tensor, Tensor]:
    keys, values = tensors[1:3]
    num_rows, num_tokens, num_heads, key_size = keys.shape
    wide = torch.promote_types(values.dtype, torch.float32)
    shape = (2, num_tokens, num_heads, num_rows * key_size, values.shape[-1])
    if runs_kernel("m2rnn", values, has_float64_on_gpu=False):
        shape = _checkpoint_shape(keys, values)
    return values.new_empty(values.shape), values.new_empty(shape, dtype=wide)


_TENSORS = ", ".join(f"Tensor {name}" for name in RecurrenceArguments._fields)


@operation(_empty_recurrence, schema=f"({_TENSORS}) -> (Tensor, Tensor)")
def m2rnn_op(*tensors: Tensor) -> tuple[Tensor, Tensor]:
    """Run the operation: return y, and the saved tensor of its backward pass (on a GPU the states before each segment)."""
    arguments = RecurrenceArguments(*tensors)
    for name, tensor in arguments._asdict().items():
        if tensor.dtype == torch.float16:
            raise UnavailableKernelError(f"m2rnn: {name} is float16. Expected bfloat16 or float32.")
    is_launched = runs_kernel("m2rnn", arguments.values_BTHV, has_float64_on_gpu=False)
    return (_launch_forward if is_launched else recurrence_forward)(arguments)


@operation(
    lambda grad, *tensors: empty_like(*tensors[:5]),
    schema=f"(Tensor grad, {_TENSORS}, Tensor saved) -> ({', '.join(5 * ['Tensor'])})",
)
def m2rnn_backward_op(grad: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the gradients of the five floating-point arguments of `sluice::m2rnn`, from that of y; the last is what it saved."""
    backward = _launch_backward if runs_kernel("m2rnn", grad, has_float64_on_gpu=False) else recurrence_backward
    return tuple(backward(grad, RecurrenceArguments(*tensors[:-1]), tensors[-1]))


register_gradients(m2rnn_op, m2rnn_backward_op, lambda inputs, output: (*inputs, output[1]))


def _tiles(keys_BTHK: Tensor, values_BTHV: Tensor) -> dict[str, int]:
    """Return the kernels' constants."""
    _, num_tokens, num_heads, key_size = keys_BTHK.shape
    value_size = values_BTHV.shape[-1]
    segment = min(LONGEST_SEGMENT, triton.next_power_of_2(num_tokens))
    return {
        "T": num_tokens,
        "H": num_heads,
        "K": key_size,
        "V": value_size,
        "KEYS": triton.cdiv(key_size, SMALLEST_TILE) * SMALLEST_TILE,
        "KEY": SMALLEST_TILE,
        "VALUE": max(triton.next_power_of_2(value_size), SMALLEST_TILE),
        "SEGMENTS": triton.cdiv(num_tokens, segment),
        "SEGMENT": segment,
    }


def _num_shares(tiles: dict[str, int]) -> int:
    """Return the programs of a row and head, each of which has a share of the keys."""
    return tiles["KEYS"] // tiles["KEY"]


def _checkpoint_shape(keys_BTHK: Tensor, values_BTHV: Tensor) -> tuple[int, ...]:
    tiles = _tiles(keys_BTHK, values_BTHV)
    return (keys_BTHK.shape[0], tiles["SEGMENTS"], tiles["H"], tiles["KEYS"], tiles["VALUE"])


def _prepared(arguments: RecurrenceArguments) -> RecurrenceArguments:
    contiguous = RecurrenceArguments(*(tensor.contiguous() for tensor in arguments))
    return contiguous._replace(forget_BTH=contiguous.forget_BTH.float())


def _launch_forward(arguments: RecurrenceArguments) -> tuple[Tensor, Tensor]:
    inputs = _prepared(arguments)
    values = inputs.values_BTHV
    tiles = _tiles(inputs.keys_BTHK, values)
    num_shares = _num_shares(tiles)
    shares_SBTHV = values.new_empty((num_shares, *values.shape), dtype=torch.float32)
    checkpoints = values.new_empty(_checkpoint_shape(inputs.keys_BTHK, values), dtype=torch.float32)
    options = launch_options("m2rnn.forward", "any", values.device)
    forward_kernel[(tiles["H"], values.shape[0], num_shares)](*inputs, shares_SBTHV, checkpoints, **tiles, **options)
    return shares_SBTHV.sum(0).to(values.dtype), checkpoints


def _launch_backward(grad_BTHV: Tensor, arguments: RecurrenceArguments, checkpoints: Tensor) -> tuple[Tensor, ...]:
    inputs = _prepared(arguments)
    tiles = _tiles(inputs.keys_BTHK, inputs.values_BTHV)
    num_rows, num_shares = grad_BTHV.shape[0], _num_shares(tiles)

    def shares(*shape: int) -> Tensor:
        return checkpoints.new_empty((num_shares, num_rows, *shape))

    grad_queries, grad_keys = (torch.empty_like(tensor) for tensor in inputs[:2])
    scratch = shares(tiles["H"], 2, tiles["SEGMENT"], tiles["KEY"], tiles["VALUE"])
    summed = (
        shares(*inputs.values_BTHV.shape[1:]),
        shares(*inputs.forget_BTH.shape[1:]),
        shares(*inputs.transition_HVV.shape),
    )
    options = launch_options("m2rnn.backward", "any", grad_BTHV.device)
    backward_kernel[(tiles["H"], num_rows, num_shares)](
        *inputs, checkpoints, grad_BTHV.contiguous(), scratch, grad_queries, grad_keys, *summed, **tiles, **options
    )
    values, forget, transition = (each.sum(0) for each in summed)
    gradients = (grad_queries, grad_keys, values, forget, transition.sum(0))
    return tuple(grad.to(like.dtype) for grad, like in zip(gradients, arguments[:5], strict=True))


def _sample_inputs(generator: torch.Generator, dtype: torch.dtype, case: ShapeCase) -> tuple[Argument, ...]:
    """Draw inputs of sizes B, T, H, K, V. W is near the identity, as it begins; documents end anywhere."""
    num_rows, num_tokens, num_heads, key_size, value_size = case.sizes

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device=generator.device)

    per_head = (num_rows, num_tokens, num_heads)
    identity = torch.eye(value_size, device=generator.device)
    return (
        normal(*per_head, key_size).to(dtype),
        normal(*per_head, key_size).to(dtype),
        normal(*per_head, value_size).to(dtype),
        torch.sigmoid(normal(*per_head)),
        identity + 0.1 * normal(num_heads, value_size, value_size),
        sample_documents(num_rows, num_tokens, 16, generator.device),
    )


SPEC = KernelSpec(
    name="m2rnn",
    reference=lambda *tensors: m2rnn_reference(RecurrenceArguments(*tensors)),
    has_serial_reference=True,
    op=lambda *tensors: m2rnn(RecurrenceArguments(*tensors)),
    sample_inputs=_sample_inputs,
    cases=(
        ShapeCase((2, 4, 3, 8, 6), "sizes that all differ, small: the registration is checked with them"),
        ShapeCase((2, 26, 1, 8, 5), "documents that end before the row; key and value below a tile; no power of two"),
        ShapeCase((1, 66, 1, 16, 16), "one row, one head; two segments between checkpoints, the last of two tokens"),
    ),
    dtypes=(torch.float32, torch.bfloat16),
    tolerance_eps=32.0,
    gradient_tolerance_eps=64.0,
    tolerance_reason=(
        "float32: each step rounds the state a few times and W, near the identity, passes the error on, so it grows with "
        "the length of a document (66 here, 16 roundings to the bound; at sizes of training the reference in float32 is itself "
        "up to 45 eps off in 14 heads, and bounds the kernel); bfloat16: the state is float32, so one rounding "
        "of each output, which the interpreter truncates"
    ),
    real_cases=(
        ShapeCase((1, 4096, 16, 64, 16), "one row of training"),
        ShapeCase((4, 2048, 56, 64, 16), "more programs than an H200 has processors"),
    ),
)
