"""CliCommand: the declaration of one command of `python -m pipeline`, and the arguments that several commands share."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from pipeline.store.store import Store

Answer = tuple[int, dict[str, Any] | list[Any]]
"""The exit code, and the value that `--json` prints."""


@dataclass(frozen=True)
class CliCommand:
    """A command of the command line.

    `run` takes the arguments, the store and the console. It imports what it alone needs, so that no command waits for the
    libraries of another. `options.refuse` reports wrong usage.
    """

    name: str
    help: str
    run: Callable[[argparse.Namespace, Store, Console], Answer]
    add_arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None


def add_corpus(parser: argparse.ArgumentParser, default: str = "quick", text: str = "name of the corpus") -> None:
    """Add the argument that names a corpus; a recipe's name is its corpus's unless `build --corpus` gave another."""
    parser.add_argument("--corpus", "--recipe", default=default, help=f"{text}; {default} unless given")


def add_snapshot(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a snapshot."""
    add_corpus(parser, text="the corpus of the refs `live` and `candidate`")
    parser.add_argument("--snapshot", default="live", help="live, candidate or a snapshot id")
