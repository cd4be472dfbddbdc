"""What the command lines share: arguments with bounds, one JSON value on stdout whatever happens, an exit code that is true.

Exit codes: 0 done, 1 refused or blocked, 2 wrong usage, 130 stopped by the keyboard.
"""

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from pipeline.core.errors import SluiceError

Say = Callable[[str], None]


class _UsageError(Exception):
    """Arguments that are none."""


class Parser(argparse.ArgumentParser):
    """An argument parser that leaves it to `run_command` to say what is wrong. An abbreviated option is none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{self.format_usage()}{self.prog}: {message}")


def run_command(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str],
    handler: Callable[[argparse.Namespace], tuple[int, Any]],
    say: Say,
) -> int:
    """Parse, run `handler`, print its answer with `--json`, and return the exit code. A user's mistake is never a traceback."""
    options = argparse.Namespace()
    try:
        parser.parse_args(arguments, options)
        code, answer = handler(options)
    except _UsageError as error:
        code, answer = 2, _refusal("UsageError", str(error), say)
    except SluiceError as error:
        code, answer = 1, _refusal(type(error).__name__, str(error), say)
    except OSError as error:
        code, answer = 1, _refusal(type(error).__name__, _words_of(error, getattr(options, "store", "here")), say)
    except MemoryError:
        code, answer = 1, _refusal("MemoryError", "the memory is not enough. Fewer workers need less of it.", say)
    except KeyboardInterrupt:
        code, answer = 130, _refusal("Interrupted", "stopped; what was finished is kept, run again to go on", say)
    if "--json" in arguments:
        _print_json(answer)
    return code


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """An argument type: a whole number within bounds."""

    def number(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is not from {least} to {most}")
        return value

    return number


def amount(text: str) -> float:
    """An argument type: a finite number that is not below zero."""
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise argparse.ArgumentTypeError(f"{text} is not a finite number from 0")
    return value


def _refusal(kind: str, message: str, say: Say) -> dict[str, str]:
    message = _printable(message)
    say(f"error {kind}: {message}")
    return {"error": kind, "message": message}


def _words_of(error: OSError, store: object) -> str:
    return f"{error.filename or store}: {error.strerror or error}. Nothing that was promoted has changed."


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _print_json(answer: Any) -> None:
    try:
        print(json.dumps(answer, indent=1, default=str), flush=True)
    except BrokenPipeError:  # the reader has seen enough; nothing may complain at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
