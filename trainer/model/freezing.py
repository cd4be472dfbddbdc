"""Freezing: parameters that keep their values, by patterns of their names.

A frozen parameter gets no gradient, has no state in the optimizer and does not decay, whichever algorithm its group has. The
selection bias of experts is moved after each step without a gradient: where a pattern matches its name, it stays too.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from pipeline.core.errors import TrainingError, did_you_mean
from trainer.model.blocks.experts import Experts
from trainer.model.hybrid import HybridModel

_SELECTION_BIAS = "selection_bias_E"


def freeze(model: HybridModel, patterns: Sequence[str]) -> None:
    """Freeze what the patterns match. Raises TrainingError for one that matches nothing, or if nothing is left to train."""
    experts = {f"{name}.{_SELECTION_BIAS}": each for name, each in model.named_modules() if isinstance(each, Experts)}
    parameters = dict(model.named_parameters())
    names = sorted(parameters.keys() | experts.keys())
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            near = did_you_mean(pattern, names, f"The model's begin with {', '.join(_tops(names))}.")
            raise TrainingError(
                f"frozen pattern {pattern!r}", "it matches no parameter", "the name of one, or a pattern", near
            )
    frozen = {name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)}
    if frozen >= parameters.keys():
        found = f"they match all {len(parameters)} parameters"
        raise TrainingError("frozen patterns", found, "at least one parameter to train", "Leave one of them out.")
    for name in sorted(frozen):
        if name in experts:
            experts[name].is_balanced = False
        else:
            parameters[name].requires_grad_(False)


def _tops(names: Sequence[str]) -> list[str]:
    """Return what names begin with: a layer with its number, else the first word."""
    tops = {".".join(name.split(".")[: 2 if name.startswith("layers.") else 1]) for name in names}
    return sorted(tops, key=lambda top: (not top.startswith("layers."), len(top), top))[:8]
