"""Commands that print what a build is configured with: `gates` and `config`."""

import argparse
import json

from rich.console import Console

from pipeline.build.recipes import RECIPES
from pipeline.build.stages import STAGES
from pipeline.cli.console import plain_table
from pipeline.cli.declaration import Answer, CliCommand
from pipeline.contracts.gates import GATES
from pipeline.core.params import fingerprint
from pipeline.store.store import Store


def _gates(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    rows = [
        {
            "name": gate.name,
            "stage": gate.stage,
            "blocking": gate.blocking,
            "measure": gate.measure,
            "limit": f"{gate.limit.comparison} {gate.limit.value}",
            "why": gate.why,
        }
        for gate in GATES
    ]
    person.print(plain_table("Gates", rows))
    return 0, rows


def _add_config_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--recipe", default="quick", help=f"one of {', '.join(RECIPES.names)}")


def _config(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    recipe = RECIPES[options.recipe]
    params = recipe.params.model_dump(mode="json")
    prints = {name: fingerprint(recipe.params.of_stage(name)) for name in STAGES.names}
    person.print_json(json.dumps(params))
    return 0, {"recipe": recipe.name, "fingerprint": fingerprint(recipe.params), "stages": prints, "params": params}


COMMANDS = (
    CliCommand("gates", "list every gate", _gates),
    CliCommand(
        "config", "print the resolved configuration of a recipe and its fingerprint", _config, _add_config_arguments
    ),
)
