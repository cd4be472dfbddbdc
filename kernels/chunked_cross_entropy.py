"""Cross-entropy over the vocabulary, a few tokens at a time: the logits of a whole batch never exist at once.

    loss = sum over trained tokens of (log sum_v exp(z_mv) - z_{m,target(m)}),    z_mv = sum_d h_md w_vd

    p_mv = exp(z_mv - log sum_v exp(z_mv)) - [v = target(m)], 0 for a token that is not trained
    dh_md = g sum_v p_mv w_vd,    dw_vd = g sum_m p_mv h_md,    g = dL/dloss, a number

Each chunk's logits are made once. A first pass over them finds each token's log-sum-exp and loss, a second writes p over
the logits, and both gradients, for g = 1, follow from them in the same turn of the loop: three matrix products, as in the
unchunked loss. The backward pass multiplies by g. A token that is not trained reads neither its target nor its hidden
state, so that a NaN there reaches nothing.

Shapes: M tokens, C tokens of a chunk, D width, V vocabulary. Logits have the dtype of h; everything that is added over v
or over chunks is float32 (float64 for float64 inputs), in one order, without atomics. Source: online log-sum-exp as in
Milakov and Gimelshein 2018, arXiv 1805.02867.
"""

from importlib import import_module
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from kernels.framework.backend import runs_kernel, tl, triton
from kernels.framework.configurations import launch_options
from kernels.framework.operands import sum_dtype
from kernels.framework.operation import empty_like, operation, register_gradients
from kernels.framework.spec import Argument, KernelSpec, Operation, ShapeCase

MAX_TILE_ENTRIES = 2048


def chunked_cross_entropy_reference(
    hidden_MD: Tensor,
    weight_VD: Tensor,
    target_ids_M: Tensor,
    is_trained_M: Tensor,
    chunk_tokens: int,
) -> Tensor:
    """Compute the definition in plain torch, from all logits: the sum in nats over trained tokens."""
    kept_MD = torch.where(is_trained_M.unsqueeze(-1), hidden_MD, 0.0)
    logits_MV = functional.linear(kept_MD, weight_VD.to(hidden_MD.dtype)).to(sum_dtype(hidden_MD))
    targets_M1 = torch.where(is_trained_M, target_ids_M, 0).long().unsqueeze(-1)
    losses_M = torch.logsumexp(logits_MV, dim=-1) - logits_MV.gather(1, targets_M1).squeeze(-1)
    return torch.where(is_trained_M, losses_M, 0.0).sum()


@triton.jit
def _rows_kernel(
    logits_ptr, targets_ptr, is_trained_ptr, losses_ptr,
    NUM_ENTRIES: tl.constexpr, TILE: tl.constexpr, NEEDS_GRADIENTS: tl.constexpr,
):  # fmt: skip
    """Return the loss of one token, and p over its logits."""
    token = tl.program_id(0).to(tl.int64)
    logits_ptr += token * NUM_ENTRIES
    is_trained = tl.load(is_trained_ptr + token) != 0
    target = tl.load(targets_ptr + token, mask=is_trained, other=0)
    # Each lane keeps its own maximum and sum; they meet once, after the last tile. Finite at first: no infinity less another.
    maxima = tl.full([TILE], -3.0e38, tl.float32)
    sums = tl.zeros([TILE], tl.float32)
    for first in range(0, NUM_ENTRIES, TILE):
        entries = first + tl.arange(0, TILE)
        logits = tl.load(logits_ptr + entries, mask=entries < NUM_ENTRIES, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(maxima, logits)
        sums = sums * tl.exp(maxima - higher) + tl.exp(logits - higher)
        maxima = higher
    highest = tl.max(maxima, axis=0)
    total = tl.sum(sums * tl.exp(maxima - highest), axis=0)
    normalizer = highest + tl.log(total)
    # A target outside the vocabulary is never read; its loss is NaN, which no caller can take for a loss.
    is_entry = (target >= 0) & (target < NUM_ENTRIES)
    target_logit = tl.load(logits_ptr + target, mask=is_entry, other=float("nan")).to(tl.float32)
    tl.store(losses_ptr + token, tl.where(is_trained, normalizer - target_logit, 0.0))
    if NEEDS_GRADIENTS:
        # The target's logit must be read by all warps before one of them writes over it.
        tl.debug_barrier()
        for first in range(0, NUM_ENTRIES, TILE):
            entries = first + tl.arange(0, TILE)
            logits = tl.load(logits_ptr + entries, mask=entries < NUM_ENTRIES, other=0.0).to(tl.float32)
            # Not exp(logit - normalizer): the normalizer's rounding would scale every probability alike.
            slopes = tl.exp(logits - highest) / total - tl.where(entries == target, 1.0, 0.0)
            slopes = tl.where(is_trained, slopes, 0.0)
            tl.store(logits_ptr + entries, slopes.to(logits_ptr.dtype.element_ty), mask=entries < NUM_ENTRIES)


def _empty_loss(hidden_MD, weight_VD, target_ids_M, is_trained_M, chunk_tokens, needs_gradients):
    gradients = (hidden_MD.new_empty(hidden_MD.shape), weight_VD.new_empty(weight_VD.shape, dtype=sum_dtype(weight_VD)))
    if not needs_gradients:
        gradients = tuple(gradient.new_empty(0) for gradient in gradients)
    losses_M = hidden_MD.new_empty(hidden_MD.shape[:1], dtype=sum_dtype(hidden_MD))
    return hidden_MD.new_empty((), dtype=sum_dtype(hidden_MD)), *gradients, losses_M


@operation(_empty_loss)
def chunked_cross_entropy_op(
    hidden_MD: Tensor,
    weight_VD: Tensor,
    target_ids_M: Tensor,
    is_trained_M: Tensor,
    chunk_tokens: int,
    needs_gradients: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Run the operation: return the loss, its gradients for the first two, empty unless needed, and the losses of tokens."""
    losses_M, grad_hidden_MD, grad_weight_VD = make_in_chunks(
        hidden_MD, weight_VD, target_ids_M, is_trained_M, chunk_tokens, needs_gradients
    )
    return losses_M.sum(), grad_hidden_MD, grad_weight_VD, losses_M


def make_in_chunks(
    hidden_MD: Tensor,
    weight_VD: Tensor,
    target_ids_M: Tensor,
    is_trained_M: Tensor,
    chunk_tokens: int,
    needs_gradients: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the loss of each token, and the gradients for a sum of these losses: one turn of the loop a chunk."""
    num_tokens, dtype = hidden_MD.shape[0], hidden_MD.dtype
    losses_M = torch.empty(num_tokens, dtype=sum_dtype(hidden_MD), device=hidden_MD.device)
    grad_hidden_MD = torch.empty(hidden_MD.shape if needs_gradients else (0,), dtype=dtype, device=hidden_MD.device)
    grad_shape = weight_VD.shape if needs_gradients else (0,)
    grad_weight_VD = torch.zeros(grad_shape, dtype=sum_dtype(weight_VD), device=hidden_MD.device)
    # Adjacent in memory: a product's bits may depend on the strides of its factors.
    cast_weight_VD = weight_VD.to(dtype).contiguous()
    write_losses = _write_losses if runs_kernel("chunked_cross_entropy", hidden_MD) else _write_losses_in_torch
    for first in range(0, num_tokens, chunk_tokens):
        chunk = slice(first, first + chunk_tokens)
        hidden_CD = torch.where(is_trained_M[chunk].unsqueeze(-1), hidden_MD[chunk], 0.0).contiguous()
        logits_CV = functional.linear(hidden_CD, cast_weight_VD)
        slopes_CV = write_losses(logits_CV, target_ids_M[chunk], is_trained_M[chunk], losses_M[chunk], needs_gradients)
        if needs_gradients:
            torch.mm(slopes_CV, cast_weight_VD, out=grad_hidden_MD[chunk])
            _add_product(grad_weight_VD, slopes_CV.t(), hidden_CD)
    return losses_M, grad_hidden_MD, grad_weight_VD


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Compute total += left @ right, added in the dtype of the total: no chunk's product is rounded to that of its factors."""
    if total.is_cuda and total.dtype != left.dtype:
        torch.addmm(total, left, right, out_dtype=total.dtype, out=total)
    else:
        total.addmm_(left.to(total.dtype), right.to(total.dtype))


def _write_losses(
    logits_CV: Tensor, target_ids_C: Tensor, is_trained_C: Tensor, losses_C: Tensor, needs_gradients: bool
) -> Tensor:
    num_tokens, num_entries = logits_CV.shape
    tile = min(MAX_TILE_ENTRIES, triton.next_power_of_2(num_entries))
    _rows_kernel[(num_tokens,)](
        logits_CV, target_ids_C.contiguous(), is_trained_C.to(torch.uint8), losses_C,
        num_entries, tile, needs_gradients, **launch_options("chunked_cross_entropy.rows", "any", logits_CV.device),
    )  # fmt: skip
    return logits_CV


def _write_losses_in_torch(
    logits_CV: Tensor, target_ids_C: Tensor, is_trained_C: Tensor, losses_C: Tensor, needs_gradients: bool
) -> Tensor:
    wide_CV = logits_CV.to(losses_C.dtype)
    # torch.logsumexp in its own steps: within it, its copy of the logits is seen by no plan of memory.
    largest_C1 = wide_CV.amax(-1, keepdim=True)
    largest_C1.masked_fill_(largest_C1.isinf(), 0.0)
    normalizers_C1 = (wide_CV - largest_C1).exp_().sum(-1, keepdim=True).log_().add_(largest_C1)
    targets_C1 = torch.where(is_trained_C, target_ids_C, 0).long().unsqueeze(-1)
    losses_C1 = normalizers_C1 - wide_CV.gather(1, targets_C1)
    losses_C.copy_(torch.where(is_trained_C, losses_C1.squeeze(-1), 0.0))
    if not needs_gradients:
        return logits_CV
    # In place: at a large vocabulary this is memory traffic more than arithmetic.
    slopes_CV = wide_CV.sub_(normalizers_C1).exp_()
    slopes_CV[torch.arange(len(targets_C1), device=targets_C1.device), targets_C1.squeeze(-1)] -= 1
    return slopes_CV.masked_fill_(~is_trained_C.unsqueeze(-1), 0.0).to(logits_CV.dtype)


@operation(lambda grad, grad_hidden, grad_weight, weight: empty_like(grad_hidden, weight))
def chunked_cross_entropy_backward_op(
    grad: Tensor, grad_hidden_MD: Tensor, grad_weight_VD: Tensor, weight_VD: Tensor
) -> tuple[Tensor, Tensor]:
    """Return both gradients times the incoming one, that of the weight in the weight's dtype."""
    grad_hidden = torch.empty_like(grad_hidden_MD)
    grad_weight = torch.empty(weight_VD.shape, dtype=weight_VD.dtype, device=weight_VD.device)
    # Into the result's dtype at once: a float32 copy of the weight's gradient would be the largest tensor of the loss.
    torch.mul(grad_hidden_MD, grad, out=grad_hidden)
    torch.mul(grad_weight_VD, grad, out=grad_weight)
    return grad_hidden, grad_weight


register_gradients(
    chunked_cross_entropy_op, chunked_cross_entropy_backward_op, lambda inputs, output: (*output[1:3], inputs[1])
)


def chunked_cross_entropy(
    hidden_MD: Tensor, weight_VD: Tensor, target_ids_M: Tensor, is_trained_M: Tensor, chunk_tokens: int
) -> Tensor:
    """Sum the cross-entropy in nats over the tokens where `is_trained_M` holds, float32; other targets are not read.

    `hidden_MD` (M, D), `weight_VD` (V, D), `target_ids_M` integers, `is_trained_M` bool. Gradients flow to the first two,
    exact zeros for tokens that are not trained, and cost nothing if they are not required. A trained target outside the
    vocabulary gives NaN on a GPU and an error elsewhere. Raises ValueError for shapes that do not fit.
    """
    return cross_entropy_of_tokens(hidden_MD, weight_VD, target_ids_M, is_trained_M, chunk_tokens)[0]


def cross_entropy_of_tokens(
    hidden_MD: Tensor, weight_VD: Tensor, target_ids_M: Tensor, is_trained_M: Tensor, chunk_tokens: int
) -> tuple[Tensor, Tensor]:
    """Return the same sum, and beside it the loss of each token (M,), 0 where it is not trained, without gradients."""
    num_tokens = hidden_MD.shape[:1]
    if not (num_tokens == target_ids_M.shape == is_trained_M.shape and hidden_MD.shape[1:] == weight_VD.shape[1:]):
        raise ValueError(
            f"chunked_cross_entropy: hidden {tuple(hidden_MD.shape)}, weight {tuple(weight_VD.shape)}, targets "
            f"{tuple(target_ids_M.shape)} and mask {tuple(is_trained_M.shape)} do not fit; "
            "expected (M, D), (V, D), (M,) and (M,)"
        )
    needs_gradients = torch.is_grad_enabled() and (hidden_MD.requires_grad or weight_VD.requires_grad)
    loss, _, _, losses_M = chunked_cross_entropy_op(
        hidden_MD, weight_VD, target_ids_M, is_trained_M.bool(), chunk_tokens, needs_gradients
    )
    return loss, losses_M


def _sample_inputs(generator: torch.Generator, dtype: torch.dtype, case: ShapeCase) -> tuple[Argument, ...]:
    """Draw logits of about unit size. Sizes: tokens, width, vocabulary, tokens of a chunk, trained tokens in a hundred."""
    device = generator.device
    num_tokens, width, num_entries, chunk_tokens, trained_percent = case.sizes
    hidden_MD = torch.randn((num_tokens, width), generator=generator, device=device).to(dtype)
    weight_VD = (torch.randn((num_entries, width), generator=generator, device=device) * width**-0.5).to(dtype)
    targets_M = torch.randint(0, num_entries, (num_tokens,), generator=generator, device=device)
    is_trained_M = torch.rand((num_tokens,), generator=generator, device=device) < trained_percent / 100
    return hidden_MD, weight_VD, torch.where(is_trained_M, targets_M, -100), is_trained_M, chunk_tokens


def cross_entropy_of_all_logits(
    hidden_MD: Tensor, weight_VD: Tensor, target_ids_M: Tensor, is_trained_M: Tensor, chunk_tokens: int
) -> Tensor:
    """Return the same sum by torch's own operations over all logits at once, with which the figure `loss` is compared."""
    logits_MV = functional.linear(hidden_MD, weight_VD.to(hidden_MD.dtype)).to(sum_dtype(hidden_MD))
    targets_M = torch.where(is_trained_M, target_ids_M, -100)
    return functional.cross_entropy(logits_MV, targets_M, reduction="sum", ignore_index=-100)


def _liger() -> Operation:
    """Load Liger's fused loss: chunked too, its gradients made in the forward pass; padded targets are left out alike."""
    loss: Any = import_module("liger_kernel.transformers.fused_linear_cross_entropy").LigerFusedLinearCrossEntropyLoss
    module = loss(ignore_index=-100, reduction="sum")
    return lambda hidden_MD, weight_VD, target_ids_M, is_trained_M, chunk_tokens: module(
        weight_VD, hidden_MD, target_ids_M
    )


def _cut_cross_entropy() -> Operation:
    """Load cut-cross-entropy: no logits in memory, and gradients of small probabilities left out (its default)."""
    loss: Any = import_module("cut_cross_entropy").linear_cross_entropy
    return lambda hidden_MD, weight_VD, target_ids_M, is_trained_M, chunk_tokens: loss(
        hidden_MD, weight_VD, target_ids_M, reduction="sum"
    )


SPEC = KernelSpec(
    name="chunked_cross_entropy",
    reference=chunked_cross_entropy_reference,
    op=chunked_cross_entropy,
    sample_inputs=_sample_inputs,
    registered_inputs=lambda arguments: (*arguments, True),
    cases=(
        ShapeCase((9, 16, 37, 4, 70), "a vocabulary that is not a power of two, a cut chunk, masked targets"),
        ShapeCase((3, 8, 2100, 2, 100), "more than one tile of the vocabulary, the last one almost empty"),
        ShapeCase((5, 4, 9, 8, 0), "all targets masked, one chunk for all"),
        ShapeCase((1, 1, 1, 1, 100), "one token, one entry: the loss is zero"),
    ),
    real_cases=(ShapeCase((8192, 1024, 32_768, 512, 90), "four rows of 2,048 tokens, a vocabulary of 32 k"),),
    tolerance_eps=16.0,
    gradient_tolerance_eps=32.0,
    peers={
        "torch, all logits": lambda: cross_entropy_of_all_logits,
        "liger LigerFusedLinearCrossEntropyLoss": _liger,
        "cut_cross_entropy linear_cross_entropy, small gradients left out": _cut_cross_entropy,
    },
    tolerance_reason=(
        "float32: dh adds V products, the target's outweighing the others, so that each addition rounds at its size: "
        "about half the root of V, 23 for the largest case, less where the target comes late; lower precision: the "
        "rounded logit moves a probability by its own eps, then one rounding each of p, of the product and of the store"
    ),
)
