"""A tiny model with its optimizer, and gradients that depend on a seed alone."""

import torch

from trainer.config.model import OptimizerConfig
from trainer.config.presets import preset
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.optim.optimizer import GroupedOptimizer, build_optimizer
from trainer.optim.schedule import set_learning_rate

RATE = 0.01


def model_and_optimizer(
    config: OptimizerConfig, dtype: torch.dtype = torch.float64
) -> tuple[HybridModel, GroupedOptimizer]:
    model = HybridModel(preset("tiny"), 64).to(dtype)
    initialize(model, seed=1)
    optimizer = build_optimizer(model, config)
    set_learning_rate(optimizer, RATE)
    return model, optimizer


def give_gradients(model: torch.nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _, parameter in sorted(model.named_parameters()):
        parameter.grad = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
