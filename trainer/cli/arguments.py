"""Arguments that several commands share, and the way in which a command is declared."""

import argparse
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.core.command_line import STEPS_ARGUMENT, add_output_arguments, print_answer, whole_number
from pipeline.store.store_layout import default_store, has_format, refuse_outputs_in_store, store_folder

if TYPE_CHECKING:
    from pipeline.store.store import Store
    from trainer.checkpoint.retention import RetentionPolicy

SEED_ARGUMENT = whole_number(0, 2**63 - 1)


def add_command(
    commands: Any, name: str, handler: Callable[[argparse.Namespace], Any], help_text: str, needs_store: bool = True
) -> argparse.ArgumentParser:
    """Declare a command. `handler` returns what `--json` prints, and imports what it needs when it is called.

    One that reads no store takes `--store` as the others do, and refuses one that is named and cannot be used.
    """
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help_text, description=help_text)
    folder = default_store(os.environ) if needs_store else None
    store_help = (
        "folder of the store, or s3://BUCKET/PREFIX; unless given SLUICE_STORE, else `store/` beside dagster.yaml"
    )
    parser.add_argument("--store", type=store_folder, default=folder, help=store_help)
    add_output_arguments(parser)
    parser.set_defaults(handler=handler)
    return parser


class RecipeHelp(str):
    """Help that lists the training recipes when it is printed: what declares them loads pydantic, which no other command needs."""

    def __mod__(self, values: Any) -> str:
        """Format the help, as argparse does."""
        from trainer.config.training_config import TRAINING_RECIPES

        return (
            f"one of {', '.join(TRAINING_RECIPES.names)}, or a TOML file that may begin with one of them as its `base`"
        )


def open_store(options: argparse.Namespace) -> "Store":
    """Open the store of a command. Raises FormatError for a store of another format."""
    from pipeline.store.store import Store

    return Store(options.store)


@contextmanager
def store_in_use(options: argparse.Namespace) -> Iterator[None]:
    """Hold the store of a command, if it has one, so that `gc` removes nothing that it reads."""
    if options.store is None or not has_format(Path(options.store)):
        yield
        return
    refuse_outputs_in_store(Path(options.store), vars(options).values())
    with open_store(options).in_use():
        yield


def add_snapshot_arguments(parser: argparse.ArgumentParser, corpus: str, ref: str = "live") -> None:
    """Add the two arguments that name a snapshot, which `snapshot_id` resolves."""
    parser.add_argument("--corpus", default=corpus, help="the corpus whose refs `live` and `candidate` are")
    parser.add_argument("--snapshot", default=ref, help="live, candidate, last or a snapshot id")


def snapshot_id(options: argparse.Namespace) -> str:
    """Return the id of the snapshot that the arguments of `add_snapshot_arguments` name."""
    from pipeline.store.snapshot import open_snapshot, resolve_snapshot

    store = open_store(options)
    return open_snapshot(store, resolve_snapshot(store, options.corpus, options.snapshot)).snapshot_id


def add_retention(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which checkpoints are kept, which `retention` reads."""
    parser.add_argument("--keep-last", type=STEPS_ARGUMENT, metavar="N", help="keep the N newest checkpoints")
    parser.add_argument("--keep-every", type=STEPS_ARGUMENT, metavar="K", help="keep those at multiples of K steps")
    parser.add_argument("--keep-best", type=STEPS_ARGUMENT, metavar="N", help="keep the N of least recent loss")


def retention(options: argparse.Namespace) -> "RetentionPolicy":
    """Return the policy that the arguments of `add_retention` set."""
    from trainer.checkpoint.retention import RetentionPolicy

    return RetentionPolicy(options.keep_last, options.keep_every, options.keep_best)


def report(lines: Iterable[str]) -> None:
    """Print lines of the answer for people on stdout, which with `--json` is where words go."""
    for line in lines:
        print_answer(line)
