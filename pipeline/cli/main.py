"""Command line `python -m pipeline`: the parser of all commands. Importing a group declares its commands, in this order.

Answers go to stdout, as one JSON value with `--json`; progress and words for people go to stderr. For the exit codes see
`pipeline.core.command_line`.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from pipeline.cli import building, bundling, inspection, maintenance, publication, token_origins  # noqa: F401
from pipeline.cli.console import person
from pipeline.cli.declaration import COMMANDS, Answer, plain
from pipeline.core.command_line import Parser, add_output_arguments, run_command
from pipeline.store.store import Store
from pipeline.store.store_layout import default_store, has_format, refuse_outputs_in_store, store_folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. A user's mistake is one line on stderr, never a traceback."""

    def run(options: argparse.Namespace) -> Answer:
        console = person(answers=None if options.json else sys.stdout, is_quiet=options.quiet)
        command, store = COMMANDS[options.command], Store(store_folder(options.store))
        refuse_outputs_in_store(store.root, vars(options).values())
        with store.in_use() if command.holds_store and has_format(store.root) else nullcontext():
            return command.run(options, store, console)

    def say(text: str) -> None:
        person().print(text, markup=False, style="red")

    return run_command(_parser, sys.argv[1:] if arguments is None else arguments, run, say)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m pipeline", description="From pinned sources to promoted snapshots.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    groups = {"": commands}
    for command in COMMANDS:
        group, _, name = command.name.rpartition(" ")
        if group not in groups:
            verbs = " and ".join(each.name for each in COMMANDS if each.name.startswith(f"{group} "))
            groups[group] = commands.add_parser(group, help=verbs).add_subparsers(required=True, metavar="VERB")
        added = groups[group].add_parser(name, help=plain(command.help), description=plain(command.help))
        added.add_argument(
            "--store", default=default_store(os.environ), help="folder of the store, or s3://BUCKET/PREFIX"
        )
        add_output_arguments(added)
        added.set_defaults(command=command.name, refuse=added.error)
        command.add_arguments(added)
    return parser
