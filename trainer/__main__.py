"""Command line `python -m trainer`: the parser of all groups of commands, in the order of COMMAND_GROUPS.

Needs none of the pipeline's libraries. Answers go to stdout, as one JSON value with `--json`; words go to stderr. For the exit
codes see `pipeline.core.command_line`; a comparison that finds a difference exits with 1 too.
"""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupted import ends the process without a traceback
    signal.pthread_sigmask(
        signal.SIG_UNBLOCK, {signal.SIGINT}
    )  # which `ensure_variables` had wait, until Python had started

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from types import FrameType
from typing import Any

from pipeline.core.command_line import Parser, end_process, run_command
from trainer.cli.arguments import store_in_use
from trainer.cli.command_groups import COMMAND_GROUPS
from trainer.train.determinism import ensure_variables


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. A user's mistake is one line on stderr, never a traceback."""

    is_first = os.environ.get("RANK", "0") == "0"  # of several ranks, the first prints the answer

    def run(options: argparse.Namespace) -> tuple[int, dict[str, Any]]:
        with ExitStack() as stack:
            if options.quiet:
                stack.enter_context(redirect_stderr(stack.enter_context(open(os.devnull, "w", encoding="utf-8"))))
            if options.json or not is_first:
                stack.enter_context(redirect_stdout(sys.stderr))
            stack.enter_context(store_in_use(options))
            answer = options.handler(options)
        code = int(answer.get("exit_code", 0) or answer.get("passed") is False) if isinstance(answer, dict) else 0
        return code, answer

    if not is_first:
        arguments = [argument for argument in arguments if argument != "--json"]
    return run_command(build_parser, arguments, run, lambda text: print(text, file=sys.stderr))


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands. Loads no torch."""
    parser = Parser(prog="python -m trainer", description="Exactly repeatable training on a snapshot.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for group in COMMAND_GROUPS:
        group.add_commands(commands)
    return parser


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; while a library is imported, end the process: the machine code of torch would abort with it."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        frame = frame.f_back
    raise KeyboardInterrupt


if __name__ == "__main__":
    ensure_variables(sys.argv[1:])
    signal.signal(signal.SIGINT, _interrupt)
    end_process(main(sys.argv[1:]))
