"""PRESETS: the named models, each that of the training recipe of its name, and the parameter counts that it was chosen for.

A program that registers one is the only process that knows its name; runs and checkpoints hold the whole model.
"""

from dataclasses import dataclass

from pipeline.core.registry import Registry
from trainer.config.model import ModelConfig
from trainer.config.training_config import training_recipe


@dataclass(frozen=True)
class ParameterTarget:
    """Parameter counts that a preset's sizes were chosen for, at a size of the vocabulary. None: not known."""

    vocabulary_size: int = 32_768
    num_parameters: float | None = None
    num_active_parameters: float | None = None
    is_published: bool = False


@dataclass(frozen=True)
class Preset:
    """A named model."""

    name: str
    model: ModelConfig
    target: ParameterTarget = ParameterTarget()
    counted: tuple[int, int] | None = None
    """Parameters, all and active, of the model at that size of the vocabulary, so that they are listed without torch."""


def _of_recipe(name: str, target: ParameterTarget, counted: tuple[int, int]) -> Preset:
    return Preset(name, training_recipe(name).model, target, counted)


PRESETS: Registry[Preset] = Registry(
    "model preset",
    _of_recipe("tiny", ParameterTarget(1024, 0.3e6), (291_756, 206_796)),
    _of_recipe("small", ParameterTarget(32_768, 125e6), (125_247_880, 71_447_848)),
    _of_recipe("base", ParameterTarget(32_768, num_active_parameters=1e9), (2_844_379_008, 1_006_799_616)),
    _of_recipe("nam52", ParameterTarget(65_536, 4.1e9, is_published=True), (4_086_750_304, 2_552_928_224)),
    _of_recipe("nam56r", ParameterTarget(65_536, 4.73e9, 3.03e9, is_published=True), (4_551_774_752, 2_753_711_520)),
)


def preset(name: str) -> ModelConfig:
    """Return the model of that name. Raises ParamsError naming the presets that exist."""
    return PRESETS[name].model
