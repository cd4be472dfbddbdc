"""COMMANDS: the commands of `python -m pipeline`, each declared above the function that runs it; and the arguments they share."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeline.build.recipes import RECIPES, Recipe, recipe_of
from pipeline.cli.console import PersonConsole
from pipeline.core.command_line import file_path
from pipeline.core.registry import Registry
from pipeline.core.settings.overrides import SET_OPTION, at, refuse_conflicts, setting
from pipeline.store.store import Store

Answer = tuple[int, dict[str, Any] | list[Any]]
"""The exit code, and the value that `--json` prints."""
_Add = Callable[[argparse.ArgumentParser], None]
_Run = Callable[[argparse.Namespace, Store, PersonConsole], Answer]


@dataclass(frozen=True)
class CliCommand:
    """A command of the command line. Two words are a group and a verb of it.

    `run` takes the arguments, the store and the console. It imports what it alone needs, so that no command waits for the
    libraries of another. `options.refuse` reports wrong usage. One that reads objects holds the store: `gc` waits for it.
    """

    name: str
    help: str
    run: _Run
    add_arguments: _Add = lambda parser: None
    holds_store: bool = True


COMMANDS: Registry[CliCommand] = Registry("command", is_of_words=True)


def command(
    name: str, text: str, add_arguments: _Add = lambda parser: None, holds_store: bool = True
) -> Callable[[_Run], _Run]:
    """Declare the decorated function as a command; `text` is its line of `--help`."""

    def declare(run: _Run) -> _Run:
        COMMANDS.register(CliCommand(name, text, run, add_arguments, holds_store))
        return run

    return declare


def plain(text: str) -> str:
    """Escape a text of a declaration for argparse, which formats help with `%`."""
    return text.replace("%", "%%")


def add_corpus(parser: argparse.ArgumentParser, default: str = "quick", text: str = "name of the corpus") -> None:
    """Add the argument that names a corpus; a recipe's name is its corpus's unless `build --corpus` gave another."""
    parser.add_argument("--corpus", "--recipe", default=default, help=f"{text}; {default} unless given")


def add_recipe(parser: argparse.ArgumentParser, default: str | None = "quick") -> None:
    """Add the arguments of `asked_recipe`."""
    names = f"one of {', '.join(RECIPES.names)}, or a TOML file that may begin with one of them as its `base`"
    parser.add_argument("--recipe", default=default, help=names)
    parser.add_argument(
        SET_OPTION,
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="a field of the recipe to set, as normalize.filters.max_num_bytes=500000; `config` prints them; may be repeated",
    )
    parser.add_argument("--pins", type=file_path, help="a pins file to build instead of the recipe's sources")
    items = "a folder of JSONL files: documents that contain a solution are dropped"
    parser.add_argument("--evaluation-items", type=file_path, help=items)


def asked_recipe(options: argparse.Namespace, with_set: bool = True) -> Recipe:
    """Return the recipe that the arguments of `add_recipe` ask for, or what it is without the fields that were set.

    Raises ParamsError for what cannot be used, or contradicts.
    """
    layers = [setting(text) for text in options.set if with_set]
    if options.evaluation_items is not None:
        field = ("normalize", "decontamination", "items_folder")
        layers.append(at(field, str(options.evaluation_items), "--evaluation-items"))
    refuse_conflicts(layers)
    return recipe_of(options.recipe, *layers, pins_file=options.pins)


def add_build(parser: argparse.ArgumentParser, default: str = "quick") -> None:
    """Add the arguments that name a build of a corpus."""
    add_corpus(parser, default)
    of = "last, candidate, live, or the id of a snapshot or a stage's output; the last that no gate blocked, unless given"
    parser.add_argument("--of", metavar="BUILD", help=of)


def add_snapshot(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a snapshot."""
    add_corpus(parser, text="the corpus of the refs `live` and `candidate`")
    parser.add_argument("--snapshot", "--of", default="live", help="live, candidate, last or a snapshot id")


def say_what_blocks(person: PersonConsole, store: Store, options: argparse.Namespace) -> None:
    """Print of which build an answer is, where a gate has blocked that one or the last."""
    from pipeline.lineage.stored_build import stored_build

    if (sentence := stored_build(store, options.corpus, options.of).sentence()) is not None:
        person.print(sentence, markup=False, style="yellow")
