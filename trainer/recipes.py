"""Named trainings: a model, its optimiser, its batches. Light: the shell reads this without torch."""

from pydantic import Field

from pipeline.errors import ParamsError
from pipeline.params import Params
from pipeline.tokenize.fim import InfillingParams
from trainer.config import ModelConfig, OptimizerConfig
from trainer.presets import preset


class TrainingConfig(Params):
    """Everything that decides a training besides its snapshot and seed. All fields are identity: a resume refuses another value."""

    model: ModelConfig
    """The model."""
    optimizer: OptimizerConfig
    """AdamW and the schedule, whose horizon does not depend on how many steps one sitting runs."""
    infilling: InfillingParams = Field(default_factory=InfillingParams)
    """How often and where pieces are infilled."""
    batch_rows: int = Field(default=8, ge=1, le=65_536)
    """Packed rows in one step, over all ranks."""
    balance_rate: float = Field(default=1e-3, ge=0, le=1)
    """How far an expert's selection bias moves after a step."""
    num_threads: int = Field(default=2, ge=1, le=256)
    """Threads of one operation on the CPU. Sums are split among them, so that the number is part of the numbers."""


RECIPES: dict[str, TrainingConfig] = {
    "tiny": TrainingConfig(
        model=preset("tiny"),
        optimizer=OptimizerConfig(peak_learning_rate=3e-3, num_warmup_steps=5, num_horizon_steps=200),
        batch_rows=4,
    ),
}


def recipe_named(name: str) -> TrainingConfig:
    """The training of that name. Raises ParamsError naming those that exist."""
    if name not in RECIPES:
        raise ParamsError(
            f"training recipe {name}", "there is none of that name", f"one of {', '.join(sorted(RECIPES))}"
        )
    return RECIPES[name]
