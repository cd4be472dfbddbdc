"""Parameter counts of a model, in all and active for a token. Nothing is allocated: the meta device has no memory.

    active = all - experts that a token does not visit - rows of Engram tables that it does not look up

The embedding counts whole, and a tied head once.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from trainer.config.model import BlockKind, ModelConfig
from trainer.config.presets import Preset

if TYPE_CHECKING:
    from torch import nn


class Sizes(NamedTuple):
    """Parameters of a model: all of them, and those that work on one token."""

    num_parameters: int
    num_active_parameters: int


def sizes_of(config: ModelConfig, vocabulary_size: int) -> Sizes:
    """Return the counts of a model, however large, without allocating it."""
    import torch  # presets are listed without it

    from trainer.model.blocks.engram import Engram
    from trainer.model.blocks.experts import Experts
    from trainer.model.hybrid import HybridModel

    with torch.device("meta"):
        model = HybridModel(config, vocabulary_size)
    num_idle = 0
    for module in model.modules():
        if isinstance(module, Experts):
            part = config.experts
            num_routed = module.into_EDF.numel() + module.out_EFD.numel()
            num_idle += num_routed // part.num_experts * (part.num_experts - part.num_selected)
        elif isinstance(module, Engram):
            num_rows, row_width = module.table_RW.shape
            num_idle += (num_rows - module.table_sizes_OH.numel()) * row_width
    total = count_parameters(model)
    return Sizes(total, total - num_idle)


def count_parameters(model: "nn.Module") -> int:
    """Count the parameter elements; a tied head counts once."""
    return sum(parameter.numel() for parameter in model.parameters())


def describe_preset(preset: Preset, vocabulary_size: int | None = None) -> dict[str, Any]:
    """Return a preset's pattern, letters and counts, and their relative differences from the published counts."""
    config, target = preset.model, preset.target
    size = vocabulary_size or target.vocabulary_size
    counted = preset.counted if size == target.vocabulary_size else None
    found = sizes_of(config, size) if counted is None else Sizes(*counted)
    letters = Counter(config.layer_kinds)
    return {
        "name": preset.name,
        "pattern": config.pattern,
        "depth": config.depth,
        "letters": {str(kind): letters[kind] for kind in BlockKind},
        "width": config.width,
        "vocabulary_size": size,
        "num_parameters": found.num_parameters,
        "num_active_parameters": found.num_active_parameters,
        "target_parameters": target.num_parameters,
        "target_active_parameters": target.num_active_parameters,
        "is_target_published": target.is_published,
        "distance": _distance(found.num_parameters, target.num_parameters),
        "active_distance": _distance(found.num_active_parameters, target.num_active_parameters),
    }


def sentence(described: dict[str, Any]) -> str:
    """Format a preset as a line of a table."""
    letters = " ".join(f"{count} {kind}" for kind, count in described["letters"].items() if count)
    counts = [
        f"{described['num_parameters'] / 1e6:10,.1f} M",
        f"{described['num_active_parameters'] / 1e6:8,.1f} M active",
    ]
    origin = "published" if described["is_target_published"] else "aim"
    distances = [
        f"{described[key]:+.1%} of the {origin} {described[target] / 1e6:,.1f} M{words}"
        for key, target, words in (
            ("distance", "target_parameters", ""),
            ("active_distance", "target_active_parameters", " active"),
        )
        if described[target] is not None
    ]
    return f"{described['name']:<7} {described['depth']:>3} layers ({letters})  {'  '.join(counts)}  {', '.join(distances)}"


def _distance(found: int, target: float | None) -> float | None:
    return None if target is None else round(found / target - 1, 4)
