"""TRAINING_RECIPES: the named trainings, each a model, its optimizer, its batches. Loads no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from pipeline.core.params import Params
from pipeline.core.registry import Registry
from pipeline.core.settings.overrides import Overrides, combine, values_of
from pipeline.core.settings.recipe_files import RecipeKind, name_of
from trainer.config.choices import AttentionChoice, CompileBackend, CompileMode, EpochOrder, Precision
from trainer.config.model import MAX_STEPS, ModelConfig, OptimizerConfig


class InfillingParams(Params):
    """Shares of infilled pieces and of their forms; see `trainer.data.infilling`."""

    rate: float = Field(default=0.5, ge=0, le=1)
    """Share of pieces that are infilled in an epoch."""
    spm_rate: float = Field(default=0.5, ge=0, le=1)
    """Share of infilled pieces that show the suffix first."""
    chunk_rate: float = Field(default=0.9, ge=0, le=1)
    """Share of infilled pieces whose middle is a run of whole chunks; the others have a random span. In thousandths."""


NamePattern = Annotated[str, Field(min_length=1)]
"""A name, or a pattern with `*`."""


class MixtureChange(Params):
    """A change of the shares of sources between two steps."""

    at_step: int = Field(ge=0, le=MAX_STEPS)
    """Steps before the change."""
    weights: Mapping[NamePattern, Annotated[float, Field(ge=0, le=1_000_000)]] = Field(min_length=1)
    """Weight of each row of a source, in place of its own; beside shares of `--mix`, a factor on the weight that they give: 1 is as
    they say. 0 leaves the source out. Keys are names of sources, or patterns with `*`; a source that none matches keeps what it
    had."""


class TrainingConfig(Params):
    """Everything that decides a training besides its snapshot and seed.

    `trainer.checkpoint.resume_rules` lists the fields that may differ on a resume.
    """

    model: ModelConfig
    """The model."""
    optimizer: OptimizerConfig
    """The optimizers and the schedule, whose horizon does not depend on how many steps one session runs."""
    infilling: InfillingParams = Field(default_factory=InfillingParams)
    """Rates and places of infilling."""
    epoch_order: EpochOrder = EpochOrder.PERMUTED
    """Order in which a source's rows are read."""
    mixture_changes: tuple[MixtureChange, ...] = ()
    """Changes of the shares of sources, in the order of their steps."""
    epoch_caps: Mapping[NamePattern, Annotated[float, Field(gt=0, le=10_000)]] = {}
    """Epochs of a source that are read at most, by its name or a pattern. A source that reaches its cap leaves, and the others
    share what it had; the run ends when all have."""
    batch_rows: int = Field(default=8, ge=1, le=65_536)
    """Packed rows in one step, over all ranks."""
    micro_batch_rows: int | None = Field(default=None, ge=1, le=65_536)
    """Rows of one logical micro-batch, independent of ranks and accumulation. None: the whole batch at once."""
    certify_every: int = Field(default=10, ge=1, le=MAX_STEPS)
    """Steps between the states that the certificate includes."""
    spike_factor: float = Field(default=3.0, gt=1, le=1_000_000)
    """A loss spike, this many times the recent median or not finite, changes no weight."""
    max_skipped_steps: int = Field(default=8, ge=0, le=MAX_STEPS)
    """Steps in a row that may be skipped so before the session ends with an error."""
    balance_rate: float = Field(default=1e-3, ge=0, le=1)
    """Amount by which an expert's selection bias moves after a step."""
    frozen: tuple[NamePattern, ...] = ()
    """Patterns of names of parameters that are not trained, such as `embedding*` and `layers.0.*`; `*` matches any characters."""
    deterministic: bool = True
    """Use deterministic algorithms of torch only. Without them no bits are promised, and a warning says so."""
    num_threads: int = Field(default=2, ge=1, le=256)
    """Threads of one operation on the CPU. Sums are split among them, so that another number gives other bits."""

    activation_checkpointing: bool = False
    """Keep of each layer its input alone, and run it again for its gradients: less memory, more time, the same bits."""
    dtype: Precision = Precision.FLOAT32
    """The type of matrix products."""
    attention: AttentionChoice = AttentionChoice.MATH
    """Implementation of attention: a choice on a GPU, where it is part of the environment too."""
    compile: CompileMode = CompileMode.OFF
    """Compile mode. Another mode rounds differently, so that it is part of the run's identity."""
    compile_backend: CompileBackend = CompileBackend.INDUCTOR
    """Backend that compiles the captured graphs."""

    @model_serializer(mode="wrap")
    def _leave_out_unset(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is off, so that adding an option moves no identity."""
        fields = serialize(self)
        plain: dict[str, Enum] = {
            "dtype": Precision.FLOAT32,
            "attention": AttentionChoice.MATH,
            "compile": CompileMode.OFF,
        }
        plain["epoch_order"] = EpochOrder.PERMUTED
        left_out = {name for name, value in plain.items() if getattr(self, name) is value}
        left_out |= {"compile_backend"} if self.compile is CompileMode.OFF else set()
        left_out |= {name for name in _OFF_UNLESS_SET if not getattr(self, name)}
        return {name: value for name, value in fields.items() if name not in left_out}

    @property
    def num_micro_batches(self) -> int:
        """Logical micro-batches of one step."""
        return self.batch_rows // (self.micro_batch_rows or self.batch_rows)

    @model_validator(mode="after")
    def _changes_are_in_order(self) -> Self:
        steps = [change.at_step for change in self.mixture_changes]
        if steps != sorted(set(steps)):
            raise ValueError(f"mixture_changes: their steps are {steps}; expected each once, in ascending order")
        return self

    @model_validator(mode="after")
    def _batch_is_a_tree(self) -> Self:
        rows = self.micro_batch_rows or self.batch_rows
        number = self.batch_rows // rows
        if self.batch_rows % rows or number & (number - 1) or not number:
            raise ValueError(
                f"micro_batch_rows: {rows} does not cut {self.batch_rows} rows into 1, 2, 4, 8, ... equal parts"
            )
        return self


_OFF_UNLESS_SET = ("frozen", "mixture_changes", "epoch_caps", "activation_checkpointing")


@dataclass(frozen=True)
class TrainingRecipe:
    """A named training."""

    name: str
    config: TrainingConfig


def training_recipe(given: str, *further: Overrides, defaults: Overrides | None = None) -> TrainingConfig:
    """Return the recipe of a name, or of a TOML file, with what further layers set, and with defaults for what none of them sets.

    Raises ParamsError naming the recipes that exist, or the file or the setting that cannot be used.
    """
    if not further and defaults is None and given in TRAINING_RECIPES:
        return TRAINING_RECIPES[given].config
    lowest = () if defaults is None else (defaults,)
    layers = (*lowest, *TRAINING_KIND.layers(given, TRAINING_RECIPES), *further)
    return combine(TrainingConfig, layers, f"{TRAINING_KIND.name} {name_of(given)}")


def _shipped(name: str) -> TrainingRecipe:
    config = combine(TrainingConfig, TRAINING_KIND.shipped(name), f"{TRAINING_KIND.name} {name}")
    return TrainingRecipe(name, config)


TRAINING_KIND = RecipeKind(
    "training recipe",
    Path(__file__).parent / "shipped_recipes",
    lambda recipe: values_of(recipe.config, only_set=True),
    ("pins", "sources", "held_out", "collect", "normalize", "enrich", "tokenize", "verify"),
    "python -m pipeline build --recipe FILE",
)
TRAINING_RECIPES: Registry[TrainingRecipe] = Registry(
    "training recipe", *map(_shipped, ("tiny", "small", "base", "nam52", "nam56r"))
)
