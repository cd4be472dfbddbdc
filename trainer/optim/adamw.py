"""AdamW, computed by torch."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from pipeline.core.params import Params
from trainer.distributed.shards import own_rows


class AdamW:
    """AdamW for the parameters of a group, fused if the group's `is_fused` says so."""

    name = "adamw"
    settings = Params

    def initial_state(self, parameter: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return both moments and the number of steps, zero."""
        moments = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
        return {**moments, "step": torch.zeros((), device=parameter.device if group["is_fused"] else "cpu")}

    def step(self, group: Mapping[str, Any], state: Mapping[Tensor, dict[str, Tensor]]) -> None:
        """Update every parameter of the group that has a gradient."""
        parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
        if not parameters:
            return
        beta1, beta2 = group["betas"]
        adamw(
            [own_rows(parameter) for parameter in parameters],
            [own_rows(parameter.grad) for parameter in parameters],
            [own_rows(state[parameter]["exp_avg"]) for parameter in parameters],
            [own_rows(state[parameter]["exp_avg_sq"]) for parameter in parameters],
            [],
            [state[parameter]["step"] for parameter in parameters],
            # One tensor at a time unless fused: foreach kernels may round in another order.
            foreach=False,
            fused=group["is_fused"],
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )
