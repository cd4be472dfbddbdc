"""Hybrid model as one file for `transformers`: `AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)`.

`python -m trainer export` copies this file beside the weights. It imports torch and, if installed, transformers; nothing of the
trainer. The formulas are those of docs/model.md, each in its plainest form. Each run of ones in `attention_mask` is a document;
padding may be on either side. Experts have no capacity limit here: no token is dropped.

Shapes: B rows, T tokens, D width, V vocabulary, H heads, N channels of a head's key, P of its value, E experts.
"""

import hashlib
import math
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

try:
    from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
    from transformers.modeling_outputs import CausalLMOutput
except ImportError:  # the classes work as plain modules
    GenerationMixin, PretrainedConfig, CausalLMOutput = object, SimpleNamespace, SimpleNamespace  # type: ignore[misc,assignment]
    PreTrainedModel = nn.Module  # type: ignore[misc,assignment]


class SluiceConfig(PretrainedConfig):
    """Configuration; `model` is the trainer's ModelConfig as JSON."""

    model_type = "sluice"

    def __init__(self, model: dict[str, Any] | None = None, vocab_size: int = 0, **others: Any) -> None:
        super().__init__(**others)
        self.model = model or {}
        self.vocab_size = vocab_size
        self.hidden_size = self.model.get("width", 0)
        self.num_hidden_layers = self.model.get("depth", 0)
        self.tie_word_embeddings = False  # a tied head has no tensor of its own
        self.use_cache = False


def empty(*shape: int) -> nn.Parameter:
    """Return a parameter without values: those of the weights file are loaded into it."""
    return nn.Parameter(torch.empty(*shape))


class Linear(nn.Module):
    """Linear map without bias."""

    def __init__(self, width_in: int, width_out: int) -> None:
        super().__init__()
        self.weight = empty(width_out, width_in)

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight)


class Norm(nn.Module):
    """Root-mean-square norm over the last axis."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight, self.epsilon = empty(width), epsilon

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.epsilon) * self.weight).to(x.dtype)


def rotated(x_N: Tensor, phases_S: Tensor) -> Tensor:
    """Rotate the pair (2i, 2i+1) by the i-th angle; channels beyond the angles do not change."""
    count = 2 * phases_S.shape[-1]
    even, odd, cosine, sine = x_N[..., :count:2], x_N[..., 1:count:2], phases_S.cos(), phases_S.sin()
    turned = torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).flatten(-2)
    return torch.cat((turned.to(x_N.dtype), x_N[..., count:]), -1)


def convolved(x_BTC: Tensor, taps_CK: Tensor, positions_BT: Tensor) -> Tensor:
    """Convolve along a document: tap 0 weighs the token itself."""
    result = x_BTC * taps_CK[:, 0]
    for distance in range(1, taps_CK.shape[1]):
        earlier = functional.pad(x_BTC, (0, 0, distance, 0))[:, : x_BTC.shape[1]]
        result = result + earlier * (positions_BT >= distance).unsqueeze(-1) * taps_CK[:, distance]
    return result


class Engram(nn.Module):
    """Embedding of n-grams added to an attention layer."""

    def __init__(self, c: dict[str, Any], layer: int, vocabulary: int) -> None:
        super().__init__()
        part, width = c["attention"]["engram"], c["width"]
        self.pad_class = part.get("hash_vocabulary_size", vocabulary)
        self.heads, num_orders = part["num_heads"], part["max_order"] - 1
        self.sizes = primes(part["min_table_rows"], num_orders * self.heads)
        half = max(1, (2**63 - 1) // (self.pad_class + 1) // 2)
        texts = [f"engram\0{part['hash_seed']}\0{layer}\0{k}".encode() for k in range(part["max_order"])]
        self.multipliers = [2 * (int.from_bytes(hashlib.sha256(t).digest(), "little") % half) + 1 for t in texts]
        memory = len(self.sizes) * part["head_size"]
        self.table_RW, self.taps_DK = empty(sum(self.sizes), part["head_size"]), empty(width, 4)
        self.key, self.value = Linear(memory, width), Linear(memory, width)
        self.key_norm, self.query_norm, self.value_norm = (Norm(width, c["norm_epsilon"]) for _ in range(3))

    def forward(self, x_BTD: Tensor, ids_BT: Tensor, positions_BT: Tensor) -> Tensor:
        ids_BT = ids_BT % self.pad_class
        mix, rows, offset = ids_BT * self.multipliers[0], [], 0
        for k in range(1, len(self.multipliers)):
            earlier = torch.where(
                positions_BT >= k, functional.pad(ids_BT, (k, 0))[:, : ids_BT.shape[1]], self.pad_class
            )
            mix = mix ^ (earlier * self.multipliers[k])
            for size in self.sizes[(k - 1) * self.heads : k * self.heads]:
                rows.append(mix % size + offset)
                offset += size
        memory = functional.embedding(torch.stack(rows, -1), self.table_RW).flatten(2)
        s = (self.key_norm(self.key(memory)) * self.query_norm(x_BTD)).sum(-1, keepdim=True) / math.sqrt(
            x_BTD.shape[-1]
        )
        value = torch.sigmoid(s.sign() * s.abs().clamp(min=1e-6).sqrt()) * self.value(memory)
        return value + functional.silu(convolved(self.value_norm(value), self.taps_DK, positions_BT))


def primes(least: int, count: int) -> list[int]:
    """Return the first primes from `least` on: sizes of the tables."""
    found: list[int] = []
    number = max(2, least)
    while len(found) < count:
        if all(number % divisor for divisor in range(2, math.isqrt(number) + 1)):
            found.append(number)
        number += 1
    return found


class Attention(nn.Module):
    """Block A: attention with grouped queries and rotary positions, one document at a time."""

    def __init__(self, c: dict[str, Any], layer: int, vocabulary: int) -> None:
        super().__init__()
        part = c["attention"]
        self.size, self.base = part["head_size"], part["rotary_base"]
        inner, groups = part["num_query_heads"] * self.size, part["num_key_value_heads"] * self.size
        self.query, self.key, self.value = (
            Linear(c["width"], inner),
            Linear(c["width"], groups),
            Linear(c["width"], groups),
        )
        self.out = Linear(inner, c["width"])
        self.engram = Engram(c, layer, vocabulary) if layer in part["engram"]["layers"] else None

    def forward(self, x_BTD: Tensor, ids_BT: Tensor, positions_BT: Tensor, mask_BTT: Tensor) -> Tensor:
        exponents = torch.arange(0, self.size, 2, dtype=torch.float32, device=x_BTD.device) / self.size
        phases = (positions_BT.unsqueeze(-1) * torch.pow(self.base, -exponents)).unsqueeze(2)
        q, k, v = (p(x_BTD).unflatten(-1, (-1, self.size)) for p in (self.query, self.key, self.value))
        q, k, v = (t.transpose(1, 2) for t in (rotated(q, phases), rotated(k, phases), v))
        k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
        scores = (q @ k.mT / math.sqrt(self.size)).masked_fill(~mask_BTT.unsqueeze(1), -math.inf)
        update = self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return update if self.engram is None else update + self.engram(x_BTD, ids_BT, positions_BT)


class Experts(nn.Module):
    """Block E: every expert is computed, with weight 0 where it was not selected."""

    def __init__(self, c: dict[str, Any]) -> None:
        super().__init__()
        part, width = c["experts"], c["width"]
        self.selected, self.is_gated, inner = part["num_selected"], part["is_gated"], 2 if part["is_gated"] else 1
        self.router_ED = empty(part["num_experts"], width)
        self.into_EDF = empty(part["num_experts"], width, inner * part["expert_size"])
        self.out_EFD = empty(part["num_experts"], part["expert_size"], width)
        self.shared_into, self.shared_out = (
            Linear(width, inner * part["shared_size"]),
            Linear(part["shared_size"], width),
        )
        self.register_buffer("selection_bias_E", torch.zeros(part["num_experts"]))

    def activated(self, x: Tensor) -> Tensor:
        if not self.is_gated:
            return functional.silu(x)
        gate, up = x.chunk(2, -1)
        return functional.silu(gate) * up

    def forward(self, x_BTD: Tensor, *_: Tensor) -> Tensor:
        scores_BTE = torch.sigmoid(functional.linear(x_BTD.to(self.router_ED.dtype), self.router_ED))
        order = torch.sort(scores_BTE + self.selection_bias_E, dim=-1, descending=True, stable=True).indices
        chosen = torch.zeros_like(scores_BTE).scatter(-1, order[..., : self.selected], 1.0) * scores_BTE
        weights_BTE = chosen / chosen.sum(-1, keepdim=True).clamp(min=torch.finfo(chosen.dtype).tiny)
        update = self.shared_out(self.activated(self.shared_into(x_BTD)))
        for expert in range(len(self.router_ED)):
            result = self.activated(x_BTD @ self.into_EDF[expert]) @ self.out_EFD[expert]
            update = update + weights_BTE[..., expert, None] * result
        return update


class Mamba3(nn.Module):
    """Block M: the whole row as one chunk of the scan, quadratic in its length."""

    def __init__(self, c: dict[str, Any]) -> None:
        super().__init__()
        self.size, states, inner = c["mamba3"]["head_size"], c["mamba3"]["state_size"], 2 * c["width"]
        heads = inner // self.size
        self.widths = (inner, inner, states, states, heads, heads, heads, states // 4)
        self.into, self.out = Linear(c["width"], sum(self.widths)), Linear(inner, c["width"])
        self.query_norm, self.key_norm = Norm(states, c["norm_epsilon"]), Norm(states, c["norm_epsilon"])
        self.query_bias_HN, self.key_bias_HN = empty(heads, states), empty(heads, states)
        self.step_bias_H, self.skip_H = empty(heads), empty(heads)

    def forward(self, x_BTD: Tensor, ids_BT: Tensor, positions_BT: Tensor, mask_BTT: Tensor) -> Tensor:
        z, x, b, c, step, decay, share, angle = self.into(x_BTD).split(self.widths, -1)
        x = x.unflatten(-1, (-1, self.size))
        step, share = functional.softplus(step + self.step_bias_H), torch.sigmoid(share)
        rate = -torch.where(decay >= 0, 1 + decay, 1 / (1 - decay.clamp(max=0)))
        sums_BTH = mask_BTT.to(step.dtype) @ (step * rate.clamp(max=-1e-4))
        turns = (step.unsqueeze(-1) * math.pi * torch.tanh(angle).unsqueeze(2)).flatten(2)
        phases = (mask_BTT.to(step.dtype) @ turns).unflatten(2, (step.shape[2], -1))
        q = rotated(self.query_norm(c).unsqueeze(2) + self.query_bias_HN, phases).transpose(1, 2)
        k = rotated(self.key_norm(b).unsqueeze(2) + self.key_bias_HN, phases).transpose(1, 2)
        own = share * step
        is_followed = functional.pad(positions_BT[:, 1:] > 0, (0, 1), value=False).unsqueeze(-1)
        later = functional.pad((step * (1 - share))[:, 1:], (0, 0, 0, 1)) * is_followed
        gaps = (sums_BTH.unsqueeze(2) - sums_BTH.unsqueeze(1)).permute(0, 3, 1, 2)
        kernel = (q @ k.mT) * gaps.masked_fill(~mask_BTT.unsqueeze(1), -math.inf).exp()
        weights = kernel.tril(-1) * (own + later).mT.unsqueeze(2) + torch.diag_embed(
            kernel.diagonal(dim1=-2, dim2=-1) * own.mT
        )
        y = (weights @ x.transpose(1, 2)).transpose(1, 2) + self.skip_H.unsqueeze(-1) * x
        return self.out(y.flatten(2) * functional.silu(z))


class M2RNN(nn.Module):
    """Block R: a loop over time."""

    def __init__(self, c: dict[str, Any]) -> None:
        super().__init__()
        heads, self.keys, self.values = (c["m2rnn"][name] for name in ("num_heads", "key_size", "value_size"))
        self.channels = (heads * self.keys, heads * self.keys, heads * self.values)
        self.widths = (sum(self.channels), heads * self.values, heads)
        self.into, self.out = Linear(c["width"], sum(self.widths)), Linear(heads * self.values, c["width"])
        self.norm, self.taps_CK = Norm(heads * self.values, c["norm_epsilon"]), empty(sum(self.channels), 4)
        self.transition_HVV = empty(heads, self.values, self.values)
        self.log_decay_rate_H, self.step_bias_H, self.skip_H = (empty(heads) for _ in range(3))

    def forward(self, x_BTD: Tensor, ids_BT: Tensor, positions_BT: Tensor, mask_BTT: Tensor) -> Tensor:
        channels, gate, step = self.into(x_BTD).split(self.widths, -1)
        q, k, v = functional.silu(convolved(channels, self.taps_CK, positions_BT)).split(self.channels, -1)
        q, k, v = (t.unflatten(-1, (-1, size)) for t, size in ((q, self.keys), (k, self.keys), (v, self.values)))
        forget = torch.exp(-self.log_decay_rate_H.exp() * functional.softplus(step + self.step_bias_H))[..., None, None]
        keeps = (positions_BT > 0).to(x_BTD.dtype)[..., None, None, None]
        h, read = torch.zeros_like(k[:, 0].unsqueeze(-1) * v[:, 0].unsqueeze(-2)), []
        for t in range(x_BTD.shape[1]):
            h = h * keeps[:, t]
            z = torch.tanh(h @ self.transition_HVV + k[:, t].unsqueeze(-1) * v[:, t].unsqueeze(-2))
            h = forget[:, t] * h + (1 - forget[:, t]) * z
            read.append((q[:, t].unsqueeze(-2) @ h).squeeze(-2))
        y = (torch.stack(read, 1) + self.skip_H.unsqueeze(-1) * v).flatten(2)
        return self.out(self.norm(y * functional.silu(gate)))


class Layer(nn.Module):
    """Norm and the block that a letter of the pattern names."""

    def __init__(self, c: dict[str, Any], layer: int, vocabulary: int) -> None:
        super().__init__()
        kind = c["pattern"][layer % len(c["pattern"])]
        self.norm = Norm(c["width"], c["norm_epsilon"])
        self.block = (
            Attention(c, layer, vocabulary) if kind == "A" else {"E": Experts, "M": Mamba3, "R": M2RNN}[kind](c)
        )


class SluiceForCausalLM(PreTrainedModel, GenerationMixin):
    """Model that returns scores (B, T, V), and the mean cross-entropy of the next tokens if `labels` are given."""

    config_class = SluiceConfig
    main_input_name = "input_ids"

    def __init__(self, config: SluiceConfig) -> None:
        super().__init__(*(() if PreTrainedModel is nn.Module else (config,)))
        c = config.model
        self.config = config
        self.embedding_VD = empty(config.vocab_size, c["width"])
        self.layers = nn.ModuleList(Layer(c, layer, config.vocab_size) for layer in range(c["depth"]))
        self.norm = Norm(c["width"], c["norm_epsilon"])
        self.head_VD = None if c["is_head_tied"] else empty(config.vocab_size, c["width"])
        if PreTrainedModel is not nn.Module:
            self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Keep the weights of the file."""

    def get_input_embeddings(self) -> None:
        """Return None: the embedding is a parameter, not a module."""

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **_: Any
    ) -> Any:
        is_token = torch.ones_like(input_ids) if attention_mask is None else attention_mask.long()
        starts = functional.pad(is_token[:, 1:] != is_token[:, :-1], (1, 0), value=True)
        indices = torch.arange(input_ids.shape[1], device=input_ids.device)
        positions = indices - (starts * indices).cummax(1).values
        segments = starts.long().cumsum(1)
        mask = (segments.unsqueeze(2) == segments.unsqueeze(1)) & (indices.unsqueeze(1) >= indices)
        x = functional.embedding(input_ids, self.embedding_VD)
        for layer in self.layers:
            x = x + layer.block(layer.norm(x), input_ids, positions, mask)
        logits = functional.linear(self.norm(x), self.embedding_VD if self.head_VD is None else self.head_VD)
        loss = None
        if labels is not None:
            loss = functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten())
        return CausalLMOutput(loss=loss, logits=logits)
