"""COMMAND_GROUPS: the groups of commands of `python -m trainer`, each declared in one file of this folder."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeline.core.registry import Registry
from trainer.cli import checkpoints, compiled_code, configuration, models, proofs, rows, train


@dataclass(frozen=True)
class CommandGroup:
    """A group of commands. `add_commands` declares each with `trainer.cli.arguments.add_command`, and imports nothing heavy."""

    name: str
    add_commands: Callable[[Any], None]


COMMAND_GROUPS: Registry[CommandGroup] = Registry(
    "command group",
    CommandGroup("train", train.add_commands),
    CommandGroup("checkpoints", checkpoints.add_commands),
    CommandGroup("rows", rows.add_commands),
    CommandGroup("models", models.add_commands),
    CommandGroup("proofs", proofs.add_commands),
    CommandGroup("compiled_code", compiled_code.add_commands),
    CommandGroup("configuration", configuration.add_commands),
)
