"""Leaf fields of recipes, each set by a file, an option, the launchpad and the list of corpora, and those that are not reached."""

import argparse
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import reduce
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from assets.forms import form, params_from
from assets.resources import BuildResource
from assets.training import TrainingParams, command_of, params_of
from pipeline.build.recipes import corpus_recipe, recipe_document, recipe_of, recipe_values
from pipeline.cli.declaration import add_recipe, asked_recipe
from pipeline.core.params import Params
from pipeline.core.settings.fields import ANY_NAME, leaf_fields
from pipeline.core.settings.overrides import at, setting, settings_of, values_of
from pipeline.pins.corpora import Corpus, CorpusTraining
from trainer.__main__ import build_parser
from trainer.cli.configuration import training_config
from trainer.config.training_config import TrainingConfig

BUILT = "builds.z3-solver"
OF_BUILDS: dict[str, Any] = {
    f"{BUILT}.database": {"database": "build/commands.json"},
    f"{BUILT}.cmake": {"cmake": True},
    f"{BUILT}.folder": {"cmake": True, "folder": "core"},
    f"{BUILT}.options": {"cmake": True, "options": ["-DA=B"]},
}
_DECAYING = "warmup-stable-decay"
TOGETHER: dict[str, dict[str, Any]] = {
    "pins": {"pins": "/mine.toml"},
    "collect.min_shard_bytes": {"collect.min_shard_bytes": 50_000},
    "held_out.hash_of": {"held_out.hash_fraction": 0.2, "held_out.hash_of": "repository"},
    "held_out.hash_salt": {"held_out.hash_fraction": 0.2, "held_out.hash_salt": "made"},
    "model.pattern": {"model.pattern": "AEM"},
    "optimizer.algorithm.name": {"optimizer.algorithm": {"name": "mine"}, "optimizer.muon": "none"},
    "optimizer.algorithm.settings.NAME": {
        "optimizer.algorithm": {"name": "mine", "settings": {"rate": 0.5}},
        "optimizer.muon": "none",
    },
    "optimizer.decay_fraction": {"optimizer.schedule": _DECAYING, "optimizer.decay_fraction": 0.4},
    "optimizer.decay_shape": {"optimizer.schedule": _DECAYING, "optimizer.decay_shape": "cosine"},
    "optimizer.annealing.floor_fraction": {"optimizer.annealing": {"num_steps": 5, "floor_fraction": 0.05}},
    "mixture_changes": {"mixture_changes": [{"at_step": 2, "weights": {"heron": 2}}]},
    "epoch_caps.NAME": {"epoch_caps": {"rate": 0.5}},
    **{name: {BUILT: value} for name, value in OF_BUILDS.items()},
}
"""Values of fields that other values do not fit, and what is set with them."""


def unreached_of_recipes(folder: Path) -> list[str]:
    """Return the leaf fields of a recipe of a corpus that are not reached by one of the ways."""
    parser = argparse.ArgumentParser()
    add_recipe(parser, "tiny")

    def by_option(settings: list[str]) -> Mapping[str, Any]:
        words = [word for text in settings for word in ("--set", text)]
        return recipe_values(asked_recipe(parser.parse_args(words)))

    def by_launchpad(settings: list[str]) -> Mapping[str, Any]:
        return recipe_values(BuildResource(recipe="tiny", pins="", decisions="", set=settings).asked())

    ways = {
        "file": lambda settings: recipe_values(recipe_of(write(folder / "mine.toml", "tiny", settings))),
        "option": by_option,
        "launchpad": by_launchpad,
        "list": lambda settings: recipe_values(corpus_recipe(Corpus(name="tiny", recipe="tiny", set=nested(settings)))),
    }
    return unreached(recipe_document(), recipe_values(recipe_of("tiny")), ways)


def unreached_of_trainings(folder: Path) -> list[str]:
    """Return the leaf fields of a training that are not reached by one of the ways."""
    parser = build_parser()

    def trained(words: list[str]) -> Mapping[str, Any]:
        return values_of(training_config(parser.parse_args(words)))

    def by_launchpad(settings: list[str]) -> Mapping[str, Any]:
        return trained(command_of("tiny", TrainingParams(set=tuple(settings)), folder)[3:])

    def by_list(settings: list[str]) -> Mapping[str, Any]:
        corpus = Corpus(name="tiny", recipe="tiny", training=CorpusTraining(set=nested(settings)))
        return trained(command_of("tiny", params_of(corpus)(), folder)[3:])

    def by_form(settings: list[str]) -> Mapping[str, Any]:
        texts = tuple(text for text in settings if text.endswith('="none"'))  # a form has no word for it
        overrides = nested(text for text in settings if text not in texts)
        params = params_from(form(TrainingParams)(overrides=overrides, set=texts), TrainingParams)
        return trained(command_of("tiny", params, folder)[3:])

    ways = {
        "form": by_form,
        "file": lambda settings: trained(["config", "--recipe", write(folder / "mine.toml", "tiny", settings)]),
        "option": lambda settings: trained(["config", *(word for text in settings for word in ("--set", text))]),
        "launchpad": by_launchpad,
        "list": by_list,
    }
    return unreached(TrainingConfig, trained(["config"]), ways)


def nested(settings: Iterable[str]) -> dict[str, Any]:
    """Return settings as the nested values of a table."""
    return reduce(merged, (setting(text).values for text in settings), {})


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested values with those of a layer above."""
    both = {
        name: merged(below.get(name, {}), each) if isinstance(each, Mapping) else each for name, each in above.items()
    }
    return {**below, **both}


def other_value(info: FieldInfo, current: Any) -> Any:
    """Return a value within the bounds of a field that is not the current one."""
    kinds = [each for each in get_args(info.annotation) if each is not NoneType]
    kind = kinds[0] if NoneType in get_args(info.annotation) else info.annotation
    if kind is bool:
        return not current
    if kind in (int, float):
        return other_number(info, kind, current)
    if get_origin(kind) is tuple:
        return [] if current else ["made"]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(member.value for member in kind if member.value != current)
    if get_origin(kind) is Literal:
        return next(each for each in get_args(kind) if each != current)
    return "/made" if kind is Path or current is None else "made"


def other_number(info: FieldInfo, kind: type, current: Any) -> Any:
    """Return twice the value, or one that is near it or near a bound."""
    limits = {
        name: getattr(each, name) for each in info.metadata for name in ("ge", "gt", "le", "lt") if hasattr(each, name)
    }
    low, high = limits.get("ge", limits.get("gt", 0)), limits.get("le", limits.get("lt", float("inf")))
    step = next((each.multiple_of for each in info.metadata if getattr(each, "multiple_of", None)), 1)
    step = step if kind is int else min(1, high - low) / 4
    near = (2 * current, current + step, current - step) if current is not None else ()
    tried = [
        value
        for value in (*near, low + step)
        if low <= value <= high and value not in (limits.get("gt"), limits.get("lt"))
    ]
    return next(kind(value) for value in tried if value != current)


def wanted(model: type[Params], values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return of each leaf what is set for it, by dotted names."""
    found = {}
    for name, info in leaf_fields(model):
        path = name.replace(f"builds.{ANY_NAME}", BUILT)
        other = {path: other_value(info, value_at(values, path.split(".")))}
        if path.startswith(BUILT):
            other = {BUILT: {"cmake": True, path.rpartition(".")[2]: next(iter(other.values()))}}
        found[path] = TOGETHER.get(path, other)
    return found


def value_at(values: Any, steps: list[str]) -> Any:
    for step in steps:
        values = values.get(step) if isinstance(values, Mapping) else None
    return values


def unreached(
    model: type[Params], before: Mapping[str, Any], ways: Mapping[str, Callable[[list[str]], Mapping[str, Any]]]
) -> list[str]:
    """Return each leaf and way by which it did not come to have another value."""
    lost = []
    for name, together in wanted(model, before).items():
        layers = [at(path.split("."), value, "") for path, value in together.items()]
        settings = [text for layer in layers for text in settings_of(layer.values)]
        steps = [step if step != ANY_NAME else "rate" for step in name.split(".")]
        for way, read in ways.items():
            if value_at(read(settings), steps) == value_at(before, steps):
                lost.append(f"{name} by {way}")
    return lost


def write(path: Path, base: str, settings: list[str]) -> str:
    path.write_text("\n".join([f'base = "{base}"', *settings]))
    return str(path)
