"""Causal attention within documents, computed by one of three backends; `attention_backends` lists what each needs.

    mixed_t = sum_u p_tu value_u,    p_t = softmax over u of query_t . key_u / sqrt(E),    u <= t and segment(u) = segment(t)

The layout of the documents is computed once for a batch and passed to every layer; nothing in it is read back to the host, and
its shapes depend on the batch's shape alone. H query heads share G heads of keys and values, H / G each; only the first backend
repeats them in memory.

Shapes: B rows, T tokens of a row, H query heads, G key/value heads, E head size, N documents a row that there is room for,
K blocks of a row, 1 a broadcast axis (heads). Padding is a document of its own: only padding attends to it.
Sources: torch.nn.attention.flex_attention and torch.nn.attention.varlen, torch 2.11; Dao 2023, arXiv 2307.08691.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from pipeline.core.errors import TrainingError
from trainer.config.choices import AttentionChoice

BLOCK_TOKENS = 128
"""Side of a block of the blockwise mask: the size that the kernels' own tiles divide."""


MAX_SEQUENCES = 65_535
"""Documents of one launch, empty ones too: flash attention counts them along the second axis of its grid."""


class AttentionPlan(NamedTuple):
    """Attention of a model. `max_documents` bounds the documents of a row, padding included; only one choice needs it."""

    choice: AttentionChoice = AttentionChoice.MATH
    max_documents: int = 0

    def with_room_for(self, doc_ids_BT: npt.NDArray[np.int32]) -> "AttentionPlan":
        """Return the plan with room for other rows. Without gradients the room changes no number."""
        num_documents = 1 + int((np.diff(doc_ids_BT, axis=1) != 0).sum(axis=1).max(initial=0))
        return self._replace(max_documents=num_documents) if self.max_documents else self


class DenseMask(NamedTuple):
    """Every pair of a row's tokens: `mask_B1TT[b, 0, t, u]` lets t look at u."""

    mask_B1TT: Tensor

    @classmethod
    def of(cls, segment_ids_BT: Tensor) -> "DenseMask":
        """Return the mask of rows whose segment ids count up from 0."""
        return cls(causal_mask(segment_ids_BT).unsqueeze(1))

    def attend(self, query_BHTE: Tensor, key_BGTE: Tensor, value_BGTE: Tensor) -> Tensor:
        """Attend with the math backend: its sums have one order, it takes any mask, and it keeps T x T numbers a head."""
        with sdpa_kernel(SDPBackend.MATH):
            return functional.scaled_dot_product_attention(
                query_BHTE, key_BGTE, value_BGTE, attn_mask=self.mask_B1TT, enable_gqa=True
            )


class BlockwiseMask(NamedTuple):
    """Key blocks that each query block attends to, and the reverse: their number and a list of them, the rest of it unused.

    A block is full if every pair in it may attend; in the others the kernel compares the segment ids.
    """

    segment_ids_BT: Tensor
    num_keys_B1K: Tensor
    keys_B1KK: Tensor
    num_full_keys_B1K: Tensor
    full_keys_B1KK: Tensor
    num_queries_B1K: Tensor
    queries_B1KK: Tensor
    num_full_queries_B1K: Tensor
    full_queries_B1KK: Tensor

    @classmethod
    def of(cls, segment_ids_BT: Tensor) -> "BlockwiseMask":
        """Return the blocks by their first and last segments: segments only count up, so that no pair has to be compared."""
        partial_B1KK, full_B1KK = blocks_of(segment_ids_BT)
        lists = (_lists(relation) for relation in (partial_B1KK, full_B1KK, partial_B1KK.mT, full_B1KK.mT))
        return cls(segment_ids_BT.int(), *(tensor for pair in lists for tensor in pair))

    def attend(self, query_BHTE: Tensor, key_BGTE: Tensor, value_BGTE: Tensor) -> Tensor:
        """Attend with FlexAttention's Triton kernels: neither pass has an atomic addition, and masked blocks cost nothing."""
        from torch.nn.attention.flex_attention import BlockMask, flex_attention

        num_tokens = query_BHTE.shape[2]
        mask = BlockMask(
            seq_lengths=(num_tokens, num_tokens),
            kv_num_blocks=self.num_keys_B1K,
            kv_indices=self.keys_B1KK,
            full_kv_num_blocks=self.num_full_keys_B1K,
            full_kv_indices=self.full_keys_B1KK,
            q_num_blocks=self.num_queries_B1K,
            q_indices=self.queries_B1KK,
            full_q_num_blocks=self.num_full_queries_B1K,
            full_q_indices=self.full_queries_B1KK,
            BLOCK_SIZE=(BLOCK_TOKENS, BLOCK_TOKENS),
            mask_mod=visibility(self.segment_ids_BT),
        )
        is_alone = query_BHTE.is_cuda and not torch.compiler.is_compiling()
        attend: Callable[..., Tensor] = _compiled_alone if is_alone else flex_attention
        return attend(
            query_BHTE, key_BGTE, value_BGTE, block_mask=mask, enable_gqa=True, kernel_options={"BACKEND": "TRITON"}
        )


class DocumentBounds(NamedTuple):
    """Starts of documents in the concatenated rows, N to a row, and the end of all: int32, of the same size for fewer documents.

    A row with fewer is filled up with empty ones, which cost almost nothing. `max_tokens` bounds the length of a document.
    """

    bounds: Tensor
    max_tokens: int

    @classmethod
    def of(cls, segment_ids_BT: Tensor, max_documents: int) -> "DocumentBounds":
        """Return the bounds of rows of at most `max_documents` segments. More fail on the device: they would overlap."""
        (num_rows, num_tokens), device = segment_ids_BT.shape, segment_ids_BT.device
        if num_rows * max_documents > MAX_SEQUENCES:
            found = f"{num_rows} rows with room for {max_documents} documents are {num_rows * max_documents} sequences"
            raise TrainingError("attention varlen", found, f"at most {MAX_SEQUENCES}", _FEWER)
        has_room = (segment_ids_BT < max_documents).all()
        torch._assert_async(has_room, f"attention varlen: a row holds more than {max_documents} documents")
        numbers_BN = torch.arange(max_documents, device=device).expand(num_rows, -1).contiguous()
        starts_BN = torch.searchsorted(segment_ids_BT.long().contiguous(), numbers_BN)
        rows_B1 = torch.arange(num_rows, device=device).unsqueeze(1) * num_tokens
        end = torch.full((1,), num_rows * num_tokens, dtype=torch.int64, device=device)
        return cls(torch.cat(((starts_BN + rows_B1).flatten(), end)).int(), num_tokens)

    def attend(self, query_BHTE: Tensor, key_BGTE: Tensor, value_BGTE: Tensor) -> Tensor:
        """Attend with flash attention over documents of their own lengths; under strict mode its backward adds in one order."""
        from torch.nn.attention.varlen import varlen_attn

        num_rows, num_heads, num_tokens, size = query_BHTE.shape
        flat = [each.transpose(1, 2).flatten(0, 1) for each in (query_BHTE, key_BGTE, value_BGTE)]
        mixed = varlen_attn(
            *flat, self.bounds, self.bounds, self.max_tokens, self.max_tokens, window_size=(-1, 0), **_SHARED_HEADS
        )
        return mixed.view(num_rows, num_tokens, num_heads, size).transpose(1, 2)


_SHARED_HEADS = {"enable_gqa": True} if torch.__version__ >= (2, 12) else {}
"""Option of the call for shared heads: torch 2.11 infers them from the shapes and takes no option."""

Layout = DenseMask | BlockwiseMask | DocumentBounds


def plan_inputs(segment_ids_BT: Tensor, plan: AttentionPlan) -> Layout:
    """Build the inputs of the plan's choice for a batch, once for all layers."""
    match plan.choice:
        case AttentionChoice.MATH:
            return DenseMask.of(segment_ids_BT)
        case AttentionChoice.FLEX:
            return BlockwiseMask.of(segment_ids_BT)
        case AttentionChoice.VARLEN:
            return DocumentBounds.of(segment_ids_BT, plan.max_documents)


def causal_mask(segment_ids_BL: Tensor) -> Tensor:
    """Return (..., L, L) bool: true where token j is not after token i and in the same document."""
    length = segment_ids_BL.shape[-1]
    lower_LL = torch.ones(length, length, dtype=torch.bool, device=segment_ids_BL.device).tril()
    return (segment_ids_BL.unsqueeze(-1) == segment_ids_BL.unsqueeze(-2)) & lower_LL


def visibility(segment_ids_BT: Tensor) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """Return the mask as a function of row, head, query and key."""

    def is_seen(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (key <= query) & (segment_ids_BT[row, key] == segment_ids_BT[row, query])

    return is_seen


def blocks_of(segment_ids_BT: Tensor) -> tuple[Tensor, Tensor]:
    """Return (B, 1, K, K) bool twice: blocks of which some pairs may attend, and blocks of which all may. Never both.

    A row's last block may be short; the pairs beyond its end count as not attending.
    """
    num_missing = -segment_ids_BT.shape[1] % BLOCK_TOKENS
    padded_BT = functional.pad(segment_ids_BT, (0, num_missing), value=torch.iinfo(segment_ids_BT.dtype).max)
    blocks_BKL = padded_BT.unflatten(1, (-1, BLOCK_TOKENS))
    first_BK, last_BK = blocks_BKL[..., 0], blocks_BKL[..., -1]
    num_blocks = first_BK.shape[1]
    below_KK = torch.ones(num_blocks, num_blocks, dtype=torch.bool, device=segment_ids_BT.device).tril(-1)
    is_joined_BKK = last_BK.unsqueeze(1) >= first_BK.unsqueeze(2)
    is_whole_BKK = first_BK.unsqueeze(1) == last_BK.unsqueeze(2)
    itself_KK = torch.eye(num_blocks, dtype=torch.bool, device=segment_ids_BT.device)
    full_BKK = is_whole_BKK & below_KK
    partial_BKK = (is_joined_BKK & below_KK | itself_KK) & ~full_BKK
    return partial_BKK.unsqueeze(1), full_BKK.unsqueeze(1)


def _lists(relation_B1KK: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each row of a relation the number of columns that hold, and their indices in order before the others."""
    order_B1KK = torch.argsort(relation_B1KK.int(), dim=-1, descending=True, stable=True)
    return relation_B1KK.sum(-1).int(), order_B1KK.int().contiguous()


def _compiled_alone(*arguments: Any, **options: Any) -> Tensor:
    """Compile FlexAttention alone, as evaluation needs it: uncompiled it would keep T x T numbers a head."""
    # A graph of its own, not one of the layers': a new size may compile anew, but never give the compiler up.
    with torch._dynamo.config.patch(error_on_recompile=False, fail_on_recompile_limit_hit=True):
        result: Tensor = _compiled_flex()(*arguments, **options)
        return result


@functools.cache
def _compiled_flex() -> Callable[..., Tensor]:
    from torch.nn.attention.flex_attention import flex_attention

    compiled: Callable[..., Tensor] = torch.compile(flex_attention, fullgraph=True, dynamic=False)
    return compiled


_FEWER = "Train with a smaller --micro-batch-rows, or with --attention flex."
