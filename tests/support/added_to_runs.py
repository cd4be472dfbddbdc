"""A loss term and an optimizer algorithm that the package does not have: a program registers them."""

import torch
from pydantic import Field
from torch.nn import functional

from pipeline.core.params import Params
from trainer.model.loss import LossTerm, ModelOutputs


def logits_z_loss(outputs: ModelOutputs) -> torch.Tensor:
    """Return a z-loss on the logits of the trained tokens."""
    logits_MV = functional.linear(outputs.hidden_MD, outputs.head_VD)[outputs.is_trained_M]
    return 0.1 * logits_MV.logsumexp(-1).square().mean()


LOGITS_Z_LOSS = LossTerm("logits_z_loss", logits_z_loss)


class SignSettings(Params):
    """Settings of Sign."""

    factor: float = Field(default=1.0, gt=0, le=10)
    """Weight of a sum of signs."""


class Sign:
    """Gradient signs, summed and weighted by the group's `factor`."""

    name = "sign"
    settings = SignSettings

    def initial_state(self, parameter, group):
        return {"total": torch.zeros_like(parameter)}

    def step(self, group, state):
        for parameter in group["params"]:
            state[parameter]["total"].add_(parameter.grad.sign())
            parameter.sub_(state[parameter]["total"], alpha=group["lr"] * group["factor"])
