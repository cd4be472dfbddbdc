"""Hybrid model as one file for `transformers`: `AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)`.

`python -m trainer export` copies this file beside the weights. It imports torch and, if installed, transformers (4 or 5); nothing
of the trainer. The formulas are those of docs/model.md, each in its plainest form. Each run of ones in `attention_mask` is a
document; padding may be on either side. Experts drop no token.

`generate` carries the state of each layer in a `SluiceCache`. A call reads any number of tokens after those that the cache has
seen. Loaded in bfloat16, norms, router, decays, phases, states, softmax and taps stay float32, as in training; `.to` narrows them.

Shapes: B rows, T tokens of a call, U tokens that the cache has seen, D width, V vocabulary, H heads, N channels of a head's key,
P of its value, E experts, S rotated pairs.
"""

import hashlib
import itertools
import math
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

try:
    from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
    from transformers.modeling_outputs import CausalLMOutputWithPast
except ImportError:  # the classes work as plain modules
    GenerationMixin, PretrainedConfig, CausalLMOutputWithPast = object, SimpleNamespace, SimpleNamespace  # type: ignore[misc,assignment]
    PreTrainedModel = nn.Module  # type: ignore[misc,assignment]

CAST_NAMES = frozenset(("embedding_VD", "head_VD", "table_RW", "into_EDF", "out_EFD"))
"""Parameters that are loaded in the dtype of the model, beside those of `Linear`; the others are kept in float32."""
CHUNK = 64
IGNORED = frozenset(("return_dict", "num_items_in_batch"))
State = tuple[Tensor, ...]


class SluiceConfig(PretrainedConfig):
    """Configuration; `model` is the trainer's ModelConfig as JSON."""

    model_type = "sluice"

    def __init__(self, model: dict[str, Any] | None = None, vocab_size: int = 0, **others: Any) -> None:
        super().__init__(**others)
        self.model, self.vocab_size = model or {}, vocab_size
        self.hidden_size, self.num_hidden_layers = (self.model.get(name, 0) for name in ("width", "depth"))
        self.tie_word_embeddings = False  # a tied head has no tensor of its own
        self.use_cache = True


class SluiceCache:
    """State of every layer after the tokens that were read, and which of those were no padding (B, U)."""

    is_compileable = is_croppable = False  # read by `generate`: shapes grow, and a token that was read stays

    def __init__(self) -> None:
        self.is_token: Tensor | None = None
        self.layers: list[State] = []

    def get_seq_length(self, *_: Any) -> int:
        """Return the number of tokens that were read."""
        return 0 if self.is_token is None else self.is_token.shape[1]

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Continue with these rows, as a beam search selects them."""
        self.is_token = None if self.is_token is None else self.is_token.index_select(0, beam_idx)
        self.layers = [tuple(each.index_select(0, beam_idx) for each in state) for state in self.layers]


class Rows(NamedTuple):
    """Ids and positions in their documents (B, T); what each token sees of this call (B, T, T), and of all (B, T, U + T)."""

    ids: Tensor
    positions: Tensor
    mask: Tensor
    seen: Tensor


def empty(*shape: int) -> nn.Parameter:
    """Return a parameter without values: those of the weights file are loaded into it."""
    return nn.Parameter(torch.empty(*shape))


def wide(x: Tensor) -> Tensor:
    """Return the tensor in float32, or float64 if it is."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class Linear(nn.Module):
    """Linear map without bias."""

    def __init__(self, width_in: int, width_out: int) -> None:
        super().__init__()
        self.weight = empty(width_out, width_in)

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight.to(x.dtype))


class Norm(nn.Module):
    """Root-mean-square norm over the last axis."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight, self.epsilon = empty(width), epsilon

    def forward(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt(wide(x).square().mean(-1, keepdim=True) + self.epsilon)
        return (wide(x) * scale * self.weight).to(x.dtype)


def rotated(x_N: Tensor, phases_S: Tensor) -> Tensor:
    """Rotate the pair (2i, 2i+1) by the i-th angle; channels beyond the angles do not change."""
    count = 2 * phases_S.shape[-1]
    even, odd, cosine, sine = x_N[..., :count:2], x_N[..., 1:count:2], phases_S.cos(), phases_S.sin()
    turned = torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).flatten(-2)
    return torch.cat((turned.to(x_N.dtype), x_N[..., count:]), -1)


def convolved(x_BTC: Tensor, taps_CK: Tensor, positions_BT: Tensor, past_BKC: Tensor) -> tuple[Tensor, Tensor]:
    """Convolve along a document, tap 0 weighs the token itself; return also the inputs that the next call needs."""
    reach = taps_CK.shape[1] - 1
    inputs = torch.cat((past_BKC, wide(x_BTC)), 1)
    result = inputs[:, reach:] * taps_CK[:, 0]
    for distance in range(1, reach + 1):
        earlier = inputs[:, reach - distance : inputs.shape[1] - distance]
        result = result + earlier * (positions_BT >= distance).unsqueeze(-1) * taps_CK[:, distance]
    return result, inputs[:, inputs.shape[1] - reach :]


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

    def initial_state(self, x_BTD: Tensor, ids_BT: Tensor) -> State:
        ids = ids_BT.new_zeros(len(ids_BT), len(self.multipliers) - 1)
        return ids, wide(x_BTD).new_zeros(len(x_BTD), 3, x_BTD.shape[-1])

    def forward(self, x_BTD: Tensor, row: Rows, past: State) -> tuple[Tensor, State]:
        ids, reach, offset = torch.cat((past[0], row.ids % self.pad_class), 1), len(self.multipliers) - 1, 0
        mix, rows = ids[:, reach:] * self.multipliers[0], []
        for k in range(1, reach + 1):
            earlier = torch.where(row.positions >= k, ids[:, reach - k : ids.shape[1] - k], self.pad_class)
            mix = mix ^ (earlier * self.multipliers[k])
            for size in self.sizes[(k - 1) * self.heads : k * self.heads]:
                rows.append(mix % size + offset)
                offset += size
        memory = functional.embedding(torch.stack(rows, -1), self.table_RW).flatten(2).to(x_BTD.dtype)
        s = wide(self.key_norm(self.key(memory)) * self.query_norm(x_BTD)).sum(-1, keepdim=True)
        s = s / len(self.taps_DK) ** 0.5
        gate = torch.sigmoid(s.sign() * s.abs().clamp(min=1e-6).sqrt()).to(x_BTD.dtype)
        value = gate * self.value(memory)
        nearby, inputs = convolved(self.value_norm(value), self.taps_DK, row.positions, past[1])
        return value + functional.silu(nearby).to(value.dtype), (ids[:, ids.shape[1] - reach :], inputs)


def primes(least: int, count: int) -> list[int]:
    """Return the first primes from `least` on: sizes of the tables."""
    numbers = (n for n in itertools.count(max(2, least)) if all(n % divisor for divisor in range(2, math.isqrt(n) + 1)))
    return list(itertools.islice(numbers, count))


class Attention(nn.Module):
    """Block A: attention with grouped queries and rotary positions, one document at a time."""

    def __init__(self, c: dict[str, Any], layer: int, vocabulary: int) -> None:
        super().__init__()
        part = c["attention"]
        self.size, self.base = part["head_size"], part["rotary_base"]
        inner, groups = part["num_query_heads"] * self.size, part["num_key_value_heads"] * self.size
        self.query, self.key, self.value = (Linear(c["width"], width) for width in (inner, groups, groups))
        self.out = Linear(inner, c["width"])
        self.engram = Engram(c, layer, vocabulary) if layer in part["engram"]["layers"] else None

    def initial_state(self, x_BTD: Tensor, ids_BT: Tensor) -> State:
        none = x_BTD.new_zeros(len(x_BTD), self.key.weight.shape[0] // self.size, 0, self.size)
        return none, none, *(() if self.engram is None else self.engram.initial_state(x_BTD, ids_BT))

    def forward(self, x_BTD: Tensor, row: Rows, past: State) -> tuple[Tensor, State]:
        exponents = torch.arange(0, self.size, 2, dtype=torch.float32, device=x_BTD.device) / self.size
        phases = (row.positions.unsqueeze(-1) * torch.pow(self.base, -exponents)).unsqueeze(2)
        q, k, v = (p(x_BTD).unflatten(-1, (-1, self.size)) for p in (self.query, self.key, self.value))
        q, k, v = (each.transpose(1, 2) for each in (rotated(q, phases), rotated(k, phases), v))
        keys, values = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        k, v = (each.repeat_interleave(q.shape[1] // keys.shape[1], 1) for each in (keys, values))
        scores = wide(q @ k.mT / math.sqrt(self.size)).masked_fill(~row.seen.unsqueeze(1), -math.inf)
        update = self.out((scores.softmax(-1).to(v.dtype) @ v).transpose(1, 2).flatten(2))
        if self.engram is None:
            return update, (keys, values)
        memory, state = self.engram(x_BTD, row, past[2:])
        return update + memory, (keys, values, *state)


class Experts(nn.Module):
    """Block E: each expert computes the tokens that selected it."""

    def __init__(self, c: dict[str, Any]) -> None:
        super().__init__()
        part, width = c["experts"], c["width"]
        self.selected, self.is_gated, inner = part["num_selected"], part["is_gated"], 2 if part["is_gated"] else 1
        self.router_ED = empty(part["num_experts"], width)
        self.into_EDF = empty(part["num_experts"], width, inner * part["expert_size"])
        self.out_EFD = empty(part["num_experts"], part["expert_size"], width)
        self.shared_into = Linear(width, inner * part["shared_size"])
        self.shared_out = Linear(part["shared_size"], width)
        self.selection_bias_E = empty(part["num_experts"]).requires_grad_(False)

    def activated(self, x: Tensor) -> Tensor:
        gate, up = x.chunk(2, -1) if self.is_gated else (x, 1.0)
        return functional.silu(gate) * up

    def forward(self, x_BTD: Tensor, row: Rows, past: State) -> tuple[Tensor, State]:
        x_MD = x_BTD.flatten(0, 1)
        scores_ME = torch.sigmoid(functional.linear(wide(x_MD), wide(self.router_ED)))
        order = torch.sort(scores_ME + self.selection_bias_E, dim=-1, descending=True, stable=True).indices
        chosen_ME = torch.zeros_like(scores_ME).scatter(-1, order[:, : self.selected], 1.0)
        weights_ME = chosen_ME * scores_ME
        weights_ME = weights_ME / weights_ME.sum(-1, keepdim=True).clamp(min=torch.finfo(weights_ME.dtype).tiny)
        routed_MD = torch.zeros_like(wide(x_MD))
        for expert in range(len(self.router_ED)):
            rows = chosen_ME[:, expert].nonzero().squeeze(1)
            result = self.activated(x_MD[rows] @ self.into_EDF[expert]) @ self.out_EFD[expert]
            routed_MD = routed_MD.index_add(0, rows, weights_ME[rows, expert, None] * result)
        update = routed_MD.to(x_MD.dtype) + self.shared_out(self.activated(self.shared_into(x_MD)))
        return update.view_as(x_BTD), past


class Mamba3(nn.Module):
    """Block M: the scan by chunks, quadratic within each."""

    def __init__(self, c: dict[str, Any]) -> None:
        super().__init__()
        self.size, states, inner = c["mamba3"]["head_size"], c["mamba3"]["state_size"], 2 * c["width"]
        heads = inner // self.size
        self.widths = (inner, inner, states, states, heads, heads, heads, states // 4)
        self.into, self.out = Linear(c["width"], sum(self.widths)), Linear(inner, c["width"])
        self.query_norm, self.key_norm = Norm(states, c["norm_epsilon"]), Norm(states, c["norm_epsilon"])
        self.query_bias_HN, self.key_bias_HN = empty(heads, states), empty(heads, states)
        self.step_bias_H, self.skip_H = empty(heads), empty(heads)

    def initial_state(self, x_BTD: Tensor, ids_BT: Tensor) -> State:
        heads, states = self.query_bias_HN.shape
        sizes = ((states // 4,), (self.size, states), (self.size,), (states,))
        return tuple(wide(x_BTD).new_zeros(len(x_BTD), heads, *size) for size in sizes)

    def forward(self, x_BTD: Tensor, row: Rows, past: State) -> tuple[Tensor, State]:
        updates = []
        for start in range(0, x_BTD.shape[1], CHUNK):
            part = slice(start, start + CHUNK)
            update, past = self.chunk(x_BTD[:, part], row.positions[:, part], row.mask[:, part, part], past)
            updates.append(update)
        return torch.cat(updates, 1), past

    def chunk(self, x_BTD: Tensor, positions: Tensor, mask: Tensor, past: State) -> tuple[Tensor, State]:
        z, x, b, c, *scalars = self.into(x_BTD).split(self.widths, -1)
        step, decay, share, angle = map(wide, scalars)
        x = wide(x.unflatten(-1, (-1, self.size))).transpose(1, 2)
        step, share = functional.softplus(step + self.step_bias_H), torch.sigmoid(share)
        rate = -torch.where(decay >= 0, 1 + decay, 1 / (1 - decay.clamp(max=0)))
        sums_BHT = (mask.to(step.dtype) @ (step * rate.clamp(max=-1e-4))).mT
        phases = self.phases(step.unsqueeze(-1) * math.pi * torch.tanh(angle).unsqueeze(2), positions, past[0])
        q = rotated(wide(self.query_norm(c)).unsqueeze(2) + self.query_bias_HN, phases).transpose(1, 2)
        k = rotated(wide(self.key_norm(b)).unsqueeze(2) + self.key_bias_HN, phases).transpose(1, 2)
        own, earlier = (share * step).mT, (step * (1 - share)).mT
        is_followed = functional.pad(positions[:, 1:] > 0, (0, 1), value=False).unsqueeze(1)
        weights_BHT = own + functional.pad(earlier[..., 1:], (0, 1)) * is_followed
        gaps = (sums_BHT.unsqueeze(3) - sums_BHT.unsqueeze(2)).masked_fill(~mask.unsqueeze(1), -math.inf).exp()
        kernel = (q @ k.mT) * gaps
        kernel = kernel.tril(-1) * weights_BHT.unsqueeze(2) + torch.diag_embed(kernel.diagonal(dim1=-2, dim2=-1) * own)
        # What the first token adds of the token before it, it adds before its own decay.
        before = past[1] + (earlier[..., :1, None] * past[2].unsqueeze(-1)) * past[3].unsqueeze(-2)
        continues = positions > torch.arange(x.shape[2], device=x.device)
        kept = (sums_BHT.exp() * continues.unsqueeze(1)).unsqueeze(-1)
        y = kernel @ x + kept * (q @ before.mT) + self.skip_H[:, None, None] * x
        last = (gaps[:, :, -1] * weights_BHT).unsqueeze(-1)
        state = kept[:, :, -1:] * before + (last * x).mT @ k
        update = self.out(y.transpose(1, 2).flatten(2).to(z.dtype) * functional.silu(z))
        return update, (phases[:, -1], state, x[:, :, -1], k[:, :, -1])

    def phases(self, turns_BTHS: Tensor, positions_BT: Tensor, phase_BHS: Tensor) -> Tensor:
        """Return the sums of turns along each document, without whole turns, which would cost their digits."""
        result = [phase_BHS]
        for turn_BHS, is_later_B in zip(turns_BTHS.unbind(1), (positions_BT > 0).unbind(1), strict=True):
            phase_BHS = result[-1] * is_later_B[:, None, None] + turn_BHS
            turns = torch.round(phase_BHS / math.tau)
            # 2 pi in two parts, of which the product with the first is exact.
            result.append((phase_BHS - turns * 6.28125) - turns * (math.tau - 6.28125))
        return torch.stack(result[1:], 1)


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
        self.log_decay_rate_H, self.step_bias_H, self.skip_HV = empty(heads), empty(heads), empty(heads, self.values)

    def initial_state(self, x_BTD: Tensor, ids_BT: Tensor) -> State:
        sizes = ((3, sum(self.channels)), (len(self.skip_HV), self.keys, self.values))
        return tuple(wide(x_BTD).new_zeros(len(x_BTD), *size) for size in sizes)

    def forward(self, x_BTD: Tensor, row: Rows, past: State) -> tuple[Tensor, State]:
        channels, gate, step = self.into(x_BTD).split(self.widths, -1)
        mixed, inputs = convolved(channels, self.taps_CK, row.positions, past[0])
        q, k, v = functional.silu(mixed).split(self.channels, -1)
        q, k, v = (t.unflatten(-1, (-1, size)) for t, size in ((q, self.keys), (k, self.keys), (v, self.values)))
        rate = self.log_decay_rate_H.exp() * functional.softplus(wide(step) + self.step_bias_H)
        forget, transition_HVV = torch.exp(-rate)[..., None, None], wide(self.transition_HVV)
        keeps, h, read = (row.positions > 0)[..., None, None, None], past[1], []
        for t in range(x_BTD.shape[1]):
            h = h * keeps[:, t]
            z = torch.tanh(h @ transition_HVV + k[:, t].unsqueeze(-1) * v[:, t].unsqueeze(-2))
            h = forget[:, t] * h + (1 - forget[:, t]) * z
            read.append((q[:, t].unsqueeze(-2) @ h).squeeze(-2))
        y = (torch.stack(read, 1) + self.skip_HV * v).flatten(2)
        return self.out(self.norm(y * functional.silu(wide(gate))).to(gate.dtype)), (inputs, h)


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
    _is_stateful = True  # a token that was read cannot be taken back

    def __init__(self, config: SluiceConfig) -> None:
        super().__init__(*(() if PreTrainedModel is nn.Module else (config,)))
        c = config.model
        self.config, self.multiplier = config, c.get("embedding_multiplier", 1.0)
        self.embedding_VD = empty(config.vocab_size, c["width"])
        self.layers = nn.ModuleList(Layer(c, layer, config.vocab_size) for layer in range(c["depth"]))
        self.norm = Norm(c["width"], c["norm_epsilon"])
        self.head_VD = None if c["is_head_tied"] else empty(config.vocab_size, c["width"])
        owners = {name: self.get_submodule(name.rpartition(".")[0]) for name in self.state_dict()}
        kept = {name.removesuffix(".weight") for name, owner in owners.items() if not isinstance(owner, Linear)}
        self._keep_in_fp32_modules_strict = {name.rpartition(".")[2] for name in kept} - CAST_NAMES
        if PreTrainedModel is not nn.Module:
            self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Keep the weights of the file."""

    def get_input_embeddings(self) -> None:
        """Return None: the embedding is a parameter, not a module."""

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        """Return False: a cache of keys and values alone lacks most of the state. `forward` makes its own."""
        return False

    def prepare_inputs_for_generation(
        self, input_ids: Tensor, past_key_values: SluiceCache | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Return the arguments of `forward` for the tokens that the cache has not read."""
        num_read = 0 if past_key_values is None else require_own_cache(past_key_values).get_seq_length()
        passed = {name: kwargs.get(name) for name in ("attention_mask", "use_cache", "logits_to_keep")}
        return {"input_ids": input_ids[:, num_read:], "past_key_values": past_key_values, **passed}

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        past_key_values: SluiceCache | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int | None = None,
        **others: Any,
    ) -> Any:
        for name in sorted(n for n, each in others.items() if (torch.is_tensor(each) or each) and n not in IGNORED):
            raise TypeError(f"{name}: this model does not read it. Leave it out.")
        cache = SluiceCache() if past_key_values is None else require_own_cache(past_key_values)
        is_token = all_tokens(input_ids, attention_mask, cache)
        row = describe(input_ids, is_token)
        x, states = functional.embedding(input_ids, self.embedding_VD) * self.multiplier, []
        for index, layer in enumerate(self.layers):
            first = getattr(layer.block, "initial_state", lambda *_: ())
            past = cache.layers[index] if cache.layers else first(x, input_ids)
            update, state = layer.block(layer.norm(x), row, past)
            x = x + update
            states.append(state)
        x = self.norm(x[:, -logits_to_keep:] if logits_to_keep else x)
        logits = functional.linear(x, self.embedding_VD if self.head_VD is None else self.head_VD)
        scores = logits[:, :-1].flatten(0, 1).float()
        loss = None if labels is None else functional.cross_entropy(scores, labels[:, 1:].flatten())
        use_cache = self.config.use_cache and not self.training if use_cache is None else use_cache
        if is_kept := use_cache or past_key_values is not None:
            cache.is_token, cache.layers = is_token, states
        return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=cache if is_kept else None)


def require_own_cache(cache: Any) -> SluiceCache:
    """Return the cache. Raises TypeError for one of another class, which lacks the state of most layers."""
    if type(cache).__name__ != SluiceCache.__name__:  # the class may have been loaded a second time from the folder
        expected = "expected the SluiceCache that a call with use_cache=True returned"
        remedy = "Leave it out to begin, or set use_cache=False to read all tokens anew each time."
        raise TypeError(f"past_key_values is a {type(cache).__name__}; {expected}. {remedy}")
    return cache


def all_tokens(ids_BT: Tensor, attention_mask: Tensor | None, cache: SluiceCache) -> Tensor:
    """Return which tokens are no padding (B, U + T). A mask may leave out those that the cache has read."""
    given = torch.ones_like(ids_BT) if attention_mask is None else attention_mask.long()
    num_read, (num_rows, num_new) = cache.get_seq_length(), ids_BT.shape
    if given.shape not in {(num_rows, num_new), (num_rows, num_read + num_new)} or num_new == 0:
        found, expected = tuple(given.shape), (num_rows, num_read + num_new)
        raise ValueError(f"attention_mask is {found} for {num_new} tokens after {num_read}; expected {expected}")
    is_whole = cache.is_token is None or given.shape[1] > num_new
    return given if is_whole else torch.cat((cache.is_token, given), 1)


def describe(ids_BT: Tensor, is_token: Tensor) -> Rows:
    """Return the positions and masks of the newest tokens."""
    num_new = ids_BT.shape[1]
    starts = functional.pad(is_token[:, 1:] != is_token[:, :-1], (1, 0), value=True)
    indices = torch.arange(is_token.shape[1], device=is_token.device)
    positions = indices - (starts * indices).cummax(1).values
    segments = starts.long().cumsum(1)
    is_same = segments[:, -num_new:].unsqueeze(2) == segments.unsqueeze(1)
    seen = is_same & (indices[-num_new:].unsqueeze(1) >= indices)
    return Rows(ids_BT, positions[:, -num_new:], seen[..., -num_new:], seen)
