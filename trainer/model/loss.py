"""Cross-entropy over the vocabulary, a few tokens at a time: the logits of a whole batch never exist at once.

    loss = sum over trained tokens of (log sum_v exp(z_v) - z_target),    z = W h

Two passes: the forward keeps one log-sum-exp a token, the backward computes each chunk's logits again. Sums over tokens
are float32 and run in the order of the chunks.

Shapes: M tokens, C tokens of a chunk, D width, V vocabulary.
"""

import torch
from torch import Tensor
from torch.nn import functional


def chunked_cross_entropy(
    hidden_MD: Tensor, weight_VD: Tensor, target_ids_M: Tensor, is_trained_M: Tensor, chunk_tokens: int
) -> Tensor:
    """Sum of the cross-entropy in nats over the tokens where `is_trained_M` holds; other targets are not read.

    Gradients flow to `hidden_MD` and `weight_VD`; they are exact zeros for tokens that are not trained.
    """
    safe_targets_M = target_ids_M.long() * is_trained_M
    return _ChunkedCrossEntropy.apply(hidden_MD, weight_VD, safe_targets_M, is_trained_M.bool(), chunk_tokens)


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden_MD, weight_VD, target_ids_M, is_trained_M, chunk_tokens) -> Tensor:
        total = hidden_MD.new_zeros((), dtype=_sum_dtype(hidden_MD))
        normalizers = []
        for rows in _chunks(hidden_MD.shape[0], chunk_tokens):
            logits_CV = _logits(hidden_MD[rows], weight_VD)
            normalizers.append(torch.logsumexp(logits_CV, dim=-1))
            target_logits_C = logits_CV.gather(1, target_ids_M[rows].unsqueeze(1)).squeeze(1)
            total = total + ((normalizers[-1] - target_logits_C) * is_trained_M[rows]).sum()
        ctx.save_for_backward(hidden_MD, weight_VD, target_ids_M, is_trained_M, torch.cat(normalizers))
        ctx.chunk_tokens = chunk_tokens
        return total

    @staticmethod
    def backward(ctx, grad: Tensor):
        hidden_MD, weight_VD, target_ids_M, is_trained_M, normalizers_M = ctx.saved_tensors
        grad_hidden_MD = torch.empty_like(hidden_MD)
        grad_weight_VD = torch.zeros_like(weight_VD, dtype=_sum_dtype(weight_VD))
        for rows in _chunks(hidden_MD.shape[0], ctx.chunk_tokens):
            # In place: at a large vocabulary this is memory traffic more than arithmetic.
            grad_logits_CV = _logits(hidden_MD[rows], weight_VD).sub_(normalizers_M[rows].unsqueeze(1)).exp_()
            tokens_C = torch.arange(grad_logits_CV.shape[0], device=grad.device)
            grad_logits_CV[tokens_C, target_ids_M[rows]] -= 1
            grad_logits_CV = grad_logits_CV.mul_((grad * is_trained_M[rows]).unsqueeze(1)).to(hidden_MD.dtype)
            grad_hidden_MD[rows] = grad_logits_CV @ weight_VD.to(hidden_MD.dtype)
            grad_weight_VD += grad_logits_CV.t() @ hidden_MD[rows]
        return grad_hidden_MD, grad_weight_VD.to(weight_VD.dtype), None, None, None


def _chunks(num_tokens: int, chunk_tokens: int) -> list[slice]:
    return [slice(first, first + chunk_tokens) for first in range(0, num_tokens, chunk_tokens)]


def _logits(hidden_CD: Tensor, weight_VD: Tensor) -> Tensor:
    return functional.linear(hidden_CD, weight_VD.to(hidden_CD.dtype)).to(_sum_dtype(hidden_CD))


def _sum_dtype(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)
