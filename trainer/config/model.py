"""Configuration of a model and its optimizer, as Params. Loads no torch: the Dagster assets build forms from it.

    ModelConfig = pattern, depth, width + one part a block: AttentionConfig (with EngramConfig), ExpertsConfig,
                  Mamba3Config, M2RNNConfig; StructureConfig for an embedding of chunks
    OptimizerConfig = AdamW, MuonConfig or AlgorithmConfig for matrices, and the learning-rate schedule

The defaults are small; a training recipe sets every size that its model depends on.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer, model_validator

from pipeline.core.params import Params
from trainer.config.choices import Precision

MAX_STEPS = 10**9
"""Steps that a training may have."""


class BlockKind(StrEnum):
    """The letters of a pattern, one letter a layer."""

    ATTENTION = "A"
    EXPERTS = "E"
    MAMBA3 = "M"
    M2RNN = "R"


class OptionalParts(Params):
    """Params with parts that may be None. Such a part is left out of what is stored, so that adding one moves no identity."""

    @model_serializer(mode="wrap")
    def _leave_out_none(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if value is not None}


class EngramConfig(OptionalParts):
    """Hashed n-gram memory: which attention layers have it, and the size of its tables."""

    layers: tuple[Annotated[int, Field(ge=0, lt=1024)], ...] = ()
    """Indices of the attention layers that carry the branch, counted from 0 over all layers. Empty: never built."""
    max_order: int = Field(default=3, ge=2, le=4)
    """Longest n-gram that is looked up, in tokens; the shortest is 2."""
    num_heads: int = Field(default=8, ge=1, le=16)
    """Hash functions, hence tables, for each order."""
    head_size: int = Field(default=8, ge=1, le=1024)
    """Width of one table row."""
    min_table_rows: int = Field(default=500, ge=2, le=2**31)
    """Each table holds a distinct prime number of rows, at least this many."""
    hash_seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed of the odd hash multipliers."""
    hash_vocabulary_size: int | None = Field(default=None, ge=2, le=2**31)
    """Token ids that the hash tells apart; a larger one counts as its remainder. Set where a vocabulary was extended, so that
    n-grams of the ids before keep their rows. None: all ids."""


class AttentionConfig(Params):
    """Grouped-query attention with rotary positions."""

    num_query_heads: int = Field(default=4, ge=1, le=1024)
    """Query heads."""
    num_key_value_heads: int = Field(default=2, ge=1, le=1024)
    """Key and value heads; each serves the same number of query heads."""
    head_size: int = Field(default=16, ge=2, le=1024, multiple_of=2)
    """Width of one head; even, because positions rotate pairs."""
    rotary_base: float = Field(default=10_000.0, gt=1, le=1_000_000_000)
    """Base of the geometric series of rotary frequencies."""
    engram: EngramConfig = EngramConfig()
    """The n-gram memory beside attention."""

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        queries, keys = self.num_query_heads, self.num_key_value_heads
        if queries % keys:
            raise ValueError(f"num_query_heads: {queries} is not a multiple of num_key_value_heads {keys}")
        return self


class ExpertsConfig(Params):
    """Routed experts with one shared expert."""

    num_experts: int = Field(default=4, ge=1, le=4096)
    """Routed experts."""
    num_selected: int = Field(default=2, ge=1, le=4096)
    """Routed experts that each token visits."""
    expert_size: int = Field(default=128, ge=1, le=262_144)
    """Hidden width of one routed expert."""
    shared_size: int = Field(default=128, ge=1, le=262_144)
    """Hidden width of the expert that every token visits."""
    is_gated: bool = True
    """True: silu(gate) * up. False: silu(up), and no gate weights."""
    capacity_factor: float = Field(default=1.25, ge=1, le=16)
    """In the compile mode `budgeted` alone: slots of an expert over its mean load, before rounding up to a power of two."""
    z_loss_weight: float = Field(default=1e-3, ge=0, le=1)
    """Weight of the mean squared log-sum-exp of the router's logits."""

    @model_validator(mode="after")
    def _enough_experts(self) -> Self:
        if self.num_selected > self.num_experts:
            raise ValueError(f"num_selected: {self.num_selected} is more than num_experts {self.num_experts}")
        return self


class Mamba3Config(Params):
    """Mamba-3, single input and output. The inner width is twice the model's width."""

    head_size: int = Field(default=64, ge=1, le=4096)
    """Width of one head (P); divides the inner width."""
    state_size: int = Field(default=128, ge=4, le=4096, multiple_of=4)
    """State of one head channel (N); a quarter as many pairs (S) rotate."""
    chunk_size: int = Field(default=64, ge=1, le=4096)
    """Tokens in one chunk of the scan (L)."""


class M2RNNConfig(Params):
    """Matrix-to-matrix recurrent network."""

    num_heads: int = Field(default=2, ge=1, le=1024)
    """Heads."""
    key_size: int = Field(default=64, ge=1, le=4096)
    """Rows of one head's state (K)."""
    value_size: int = Field(default=16, ge=1, le=4096)
    """Columns of one head's state (V)."""


class StructureConfig(Params):
    """Embedding of the kind of a token's chunk, and of the depth of its document in the order of dependencies."""

    num_kinds: int = Field(default=16, ge=2, le=256)
    """Kinds of chunks, coded from 0 in the data. A larger code counts as the last kind."""
    num_levels: int = Field(default=32, ge=2, le=65_536)
    """Dependency levels. A deeper one counts as the last."""
    bottleneck_size: int = Field(default=64, ge=1, le=4096)
    """Width of both embeddings, before the projection to the model's width, which starts at zero."""


class ModelConfig(OptionalParts):
    """One hybrid model. The vocabulary size comes from the data snapshot, the row length from its rows."""

    pattern: str = Field(json_schema_extra={"pattern": f"^[{''.join(BlockKind)}]+$"})
    """One letter a layer: A attention, E experts, M Mamba-3, R M2RNN. Tiled to the depth; the last tile may be cut."""
    depth: int = Field(ge=1, le=1024)
    """Number of layers."""
    width: int = Field(ge=2, le=65_536)
    """Width of the residual stream (D)."""
    is_head_tied: bool = True
    """Use the embedding as the output head."""
    embedding_multiplier: float | None = Field(default=None, gt=0, le=1_000_000)
    """Factor of a token's embedding where it enters the stream. None: 1."""
    norm_epsilon: float = Field(default=1e-5, gt=0, lt=1)
    """Added to the mean square in every norm."""
    loss_chunk_tokens: int = Field(default=256, ge=1, le=2**20)
    """Tokens whose logits exist at the same time."""
    max_row_tokens: int = Field(default=4096, ge=1, le=2**20)
    """Longest row, and longest text with its prompt, that the model may be given."""
    attention: AttentionConfig = AttentionConfig()
    """The A layers."""
    experts: ExpertsConfig = ExpertsConfig()
    """The E layers."""
    mamba3: Mamba3Config = Mamba3Config()
    """The M layers."""
    m2rnn: M2RNNConfig = M2RNNConfig()
    """The R layers."""
    structure: StructureConfig | None = None
    """The structure embedding. None: never built."""

    @property
    def layer_kinds(self) -> tuple[BlockKind, ...]:
        """The kind of each layer: the pattern, tiled to the depth."""
        return tuple(BlockKind(self.pattern[layer % len(self.pattern)]) for layer in range(self.depth))

    @field_validator("pattern")
    @classmethod
    def _known_letters(cls, pattern: str) -> str:
        letters = "".join(BlockKind)
        unknown = sorted(set(pattern) - set(letters))
        if not pattern:
            raise ValueError(f"the pattern is empty; expected one of the letters {letters} for each layer")
        if unknown:
            raise ValueError(f"unknown letters {', '.join(unknown)} in {pattern!r}; expected only {', '.join(letters)}")
        return pattern

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        kinds = self.layer_kinds
        if BlockKind.MAMBA3 in kinds and 2 * self.width % self.mamba3.head_size:
            raise ValueError(f"mamba3.head_size: {self.mamba3.head_size} does not divide twice the width {self.width}")
        for layer in self.attention.engram.layers:
            if not 0 <= layer < self.depth or kinds[layer] is not BlockKind.ATTENTION:
                layers = [index for index, kind in enumerate(kinds) if kind is BlockKind.ATTENTION]
                raise ValueError(f"attention.engram.layers: layer {layer} is not an A layer; those are {layers}")
        return self


class Schedule(StrEnum):
    """Fall of the learning rate after its warm-up, to the final rate at the horizon."""

    COSINE = "cosine"
    LINEAR = "linear"
    WARMUP_STABLE_DECAY = "warmup-stable-decay"
    """The peak is held, and the last share of the steps falls: a run may be continued from any step before that."""


class DecayShape(StrEnum):
    """Shape of the fall that ends warmup-stable-decay."""

    LINEAR = "linear"
    COSINE = "cosine"
    SQUARE_ROOT = "1-sqrt"
    """One minus the square root of the progress (Hägele et al. 2024, arXiv 2405.18392)."""


class AnnealingConfig(Params):
    """Annealing after the horizon: the learning rate falls once more, linearly, and stays at its floor."""

    num_steps: int = Field(ge=1, le=MAX_STEPS)
    """Steps of the fall, from the horizon on."""
    floor_fraction: float = Field(default=0.0, ge=0, le=1)
    """Learning rate at the end and after it, over the peak; at most `final_learning_rate_fraction`."""


class MuonConfig(OptionalParts):
    """Momentum whose update is orthogonalized, for matrices. The rest stays with AdamW.

    Its learning rate and decay are those of AdamW: the update's scale is set so that both move a weight about as far.
    """

    momentum: float = Field(default=0.95, ge=0, lt=1)
    """Decay of the sum of gradients."""
    has_nesterov_momentum: bool = True
    """Use Nesterov momentum."""
    num_iterations: int = Field(default=5, ge=1, le=20)
    """Products that bring the singular values of an update near one; 5 leave those above a thousandth of its norm within 13 %."""
    update_scale: float = Field(default=0.2, gt=0, le=10)
    """Root mean square of an update, over the learning rate, for a square matrix: times sqrt(max(rows, columns))."""
    product_dtype: Precision | None = None
    """Type of the products; bfloat16 is for GPUs, where float32 has no tensor cores. None: that of the parameters."""


class AlgorithmConfig(Params):
    """An algorithm of `trainer.optim.optimizer.ALGORITHMS` by its name, for matrices. The rest stays with AdamW."""

    name: str
    """Its name, which a program may have registered."""
    settings: Mapping[str, Annotated[float, Field(ge=-1_000_000_000, le=1_000_000_000)]] = {}
    """Fields of its `settings`, beside `lr`, `betas`, `eps` and `weight_decay`, which it has from the optimizer."""


_OF_STABLE_DECAY = ("decay_fraction", "decay_shape")


class OptimizerConfig(Params):
    """The optimizers of all parameters and their learning-rate schedule."""

    peak_learning_rate: float = Field(default=3e-3, gt=0, le=1)
    """Learning rate at the end of the warm-up."""
    schedule: Schedule = Schedule.COSINE
    """Shape of the fall from the peak to the final learning rate."""
    decay_fraction: float = Field(default=0.2, gt=0, le=1)
    """Share of the steps up to the horizon that fall, with `warmup-stable-decay` alone."""
    decay_shape: DecayShape = DecayShape.LINEAR
    """Shape of that fall."""
    num_warmup_steps: int = Field(default=10, ge=0, le=MAX_STEPS)
    """Steps over which the learning rate rises linearly from near zero."""
    num_horizon_steps: int = Field(default=1000, ge=1, le=MAX_STEPS)
    """Step at which the schedule ends, however many steps one session runs."""
    final_learning_rate_fraction: float = Field(default=0.1, ge=0, le=1)
    """Learning rate at the horizon and after it, over the peak."""
    annealing: AnnealingConfig | None = None
    """One more fall after the horizon, below the final learning rate. None: the rate stays there."""
    engram_learning_rate_factor: float = Field(default=5.0, gt=0, le=1000)
    """Learning rate of the Engram tables, over that of the rest."""
    weight_decay: float = Field(default=0.1, ge=0, le=10)
    """Decoupled decay of matrices, times the learning rate, for each step."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """Decay of the first moment."""
    beta2: float = Field(default=0.95, ge=0, lt=1)
    """Decay of the second moment."""
    epsilon: float = Field(default=1e-8, gt=0, le=1)
    """Added to the root of the second moment."""
    max_gradient_norm: float = Field(default=1.0, gt=0, le=1_000_000)
    """Gradients are scaled down to this norm over all parameters."""
    muon: MuonConfig | None = None
    """Muon for the matrices. None: AdamW for them too."""
    algorithm: AlgorithmConfig | None = None
    """Another algorithm for the matrices, in place of Muon."""

    @property
    def num_decay_steps(self) -> int:
        """Steps of the fall to the horizon: all after the warm-up, or the share that the schedule declares."""
        if self.schedule is Schedule.WARMUP_STABLE_DECAY:
            return max(1, round(self.decay_fraction * self.num_horizon_steps))
        return self.num_horizon_steps - self.num_warmup_steps

    @model_serializer(mode="wrap")
    def _leave_out_unused(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is None, and the settings of a schedule that is not chosen: adding one moves no identity."""
        unused = () if self.schedule is Schedule.WARMUP_STABLE_DECAY else _OF_STABLE_DECAY
        return {name: value for name, value in serialize(self).items() if value is not None and name not in unused}

    @model_validator(mode="after")
    def _warmup_ends(self) -> Self:
        warmup, horizon = self.num_warmup_steps, self.num_horizon_steps
        if warmup >= horizon:
            raise ValueError(f"num_warmup_steps: {warmup} is not below num_horizon_steps {horizon}")
        if warmup + self.num_decay_steps > horizon:
            steps = f"{self.num_decay_steps} of {horizon} steps"
            raise ValueError(f"decay_fraction: {self.decay_fraction:g} falls for {steps}, and {warmup} are the warm-up")
        return self

    @model_validator(mode="after")
    def _falls_are_those_of_the_schedule(self) -> Self:
        fields = type(self).model_fields
        changed = [name for name in _OF_STABLE_DECAY if getattr(self, name) != fields[name].default]
        if changed and self.schedule is not Schedule.WARMUP_STABLE_DECAY:
            raise ValueError(
                f"{changed[0]}: it has no effect with schedule {self.schedule}, only with warmup-stable-decay"
            )
        final = self.final_learning_rate_fraction
        if self.annealing is not None and self.annealing.floor_fraction > final:
            floor = self.annealing.floor_fraction
            raise ValueError(f"annealing.floor_fraction: {floor:g} is above final_learning_rate_fraction {final:g}")
        return self

    @model_validator(mode="after")
    def _matrices_have_one_algorithm(self) -> Self:
        if self.muon is not None and self.algorithm is not None:
            raise ValueError(f"algorithm: {self.algorithm.name} and muon are both given; expected one of them")
        return self
