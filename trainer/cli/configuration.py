"""The command `config`, and the arguments by which a command is given the configuration of a training."""

import argparse
import json
from typing import Any

from pipeline.core.command_line import STEPS_ARGUMENT
from pipeline.core.errors import ParamsError
from trainer.cli.arguments import RecipeHelp, add_command, report
from trainer.config.choices import AttentionChoice, CompileBackend, CompileMode, Precision

_SWITCHES = {
    "deterministic": {"on": True, "off": False},
    "structure": {"on": {}, "off": "none"},
}
"""Values of a field by the words of its option."""
_FIELDS = ("batch_rows", "micro_batch_rows", "deterministic", "dtype", "attention", "compile", "compile_backend")
_SHORT_FORMS = {**{name: (name,) for name in _FIELDS}, "structure": ("model", "structure")}
"""Options of their own for fields of the recipe: `--dtype bfloat16` is `--set dtype=bfloat16`."""


def add_commands(commands: Any) -> None:
    """Declare the commands of this group."""
    text = "print a training recipe, what differs from another one, or the JSON Schema of its file"
    config = add_command(commands, "config", _config, text, needs_store=False)
    add_recipe_arguments(config)
    config.add_argument("--diff", metavar="RECIPE", help="print what differs from this recipe, a name or a file")
    config.add_argument("--schema", action="store_true", help="print the JSON Schema of a recipe's file, for editors")


def add_recipe_arguments(parser: argparse.ArgumentParser) -> Any:
    """Add the arguments that name a recipe and set its fields, which `training_config` reads; return the group of the first."""
    naming = parser.add_mutually_exclusive_group()
    naming.add_argument("--recipe", default="tiny", help=RecipeHelp("training recipe"))
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="a field of the recipe to set, as optimizer.weight_decay=0.05; `config` prints them; may be repeated",
    )
    parser.add_argument("--batch-rows", type=STEPS_ARGUMENT, help="rows of one step; overrides the recipe's")
    parser.add_argument("--micro-batch-rows", type=STEPS_ARGUMENT, help="rows of one logical micro-batch")
    parser.add_argument("--deterministic", choices=("on", "off"), help="override the recipe's setting")
    parser.add_argument(
        "--dtype", choices=[*map(str, Precision)], help="data type of matrix products; overrides the recipe's"
    )
    parser.add_argument(
        "--attention", choices=[*map(str, AttentionChoice)], help="attention backend; varlen in bfloat16 on a GPU"
    )
    parser.add_argument("--compile", choices=[*map(str, CompileMode)], help="fullgraph on a GPU, else the recipe's")
    parser.add_argument("--compile-backend", choices=[*map(str, CompileBackend)], help="override the recipe's setting")
    parser.add_argument("--structure", choices=("on", "off"), help="the structure embedding; overrides the recipe's")
    return naming


def training_config(options: argparse.Namespace) -> Any:
    """Return the recipe's TrainingConfig, with the fields that arguments set, and else the defaults of the device.

    Raises ParamsError for what cannot be used, and for arguments that contradict each other.
    """
    from pipeline.core.settings.overrides import Overrides, refuse_conflicts, setting
    from trainer.config.training_config import training_recipe
    from trainer.model.attention_backends import default_choice

    device = getattr(options, "device", "cpu")
    layers = [*map(setting, options.set), *_short_forms(options)]
    refuse_conflicts(layers)
    config = training_recipe(options.recipe, *layers)
    of_device = {"attention": default_choice(device, config.dtype).value}
    of_device |= {"compile": CompileMode.FULLGRAPH.value} if device.startswith("cuda") else {}
    return training_recipe(options.recipe, *layers, defaults=Overrides(f"device {device}", of_device))


def _short_forms(options: argparse.Namespace) -> Any:
    """Iterate over what the options of their own set, as layers."""
    from pipeline.core.settings.overrides import at

    for name, steps in _SHORT_FORMS.items():
        if (given := getattr(options, name)) is not None:
            yield at(steps, _SWITCHES.get(name, {}).get(given, given), f"--{name.replace('_', '-')}")


def _config(options: argparse.Namespace) -> dict[str, Any]:
    from pipeline.core.settings.fields import schema_of
    from pipeline.core.settings.overrides import changed_fields, difference_line, values_of
    from trainer.checkpoint.resume_rules import effects_on_a_resume
    from trainer.config.training_config import TRAINING_KIND, TrainingConfig, training_recipe

    if options.schema:
        given = [*(["--diff"] if options.diff else []), *(["--set"] if options.set else [])]
        given += [layer.subject for layer in _short_forms(options)]
        if given:
            raise ParamsError(
                "--schema",
                f"it is given with {given[0]}",
                "it alone, as it is of all recipes",
                f"Leave out {given[0]}.",
            )
        schema = schema_of(TrainingConfig, TRAINING_KIND.name)
        report([json.dumps(schema, indent=1)] if not options.json else [])
        return schema
    config = training_config(options)
    if options.diff is None:
        report([json.dumps(values_of(config), indent=1)])
        return {"recipe": options.recipe, "config": values_of(config)}
    found = changed_fields(values_of(training_recipe(options.diff)), values_of(config))
    effects = effects_on_a_resume(found)
    report(f"{difference_line(name, *values)}  (on a resume: {effects[name]})" for name, values in found.items())
    if "refused" in effects.values():
        report(["what is refused on a resume needs a new run, which a run without a name is by itself"])
    return {"recipe": options.recipe, "differs_from": options.diff, "differences": found, "on_a_resume": effects}
