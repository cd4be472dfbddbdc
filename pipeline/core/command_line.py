"""Command lines: argument types with bounds, errors in one line, one JSON value on stdout, and the exit code.

Exit codes: 0 done, 1 error or blocked, 2 wrong usage, 130 interrupted.
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
    """Arguments that the parser rejects."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors `run_command` prints. Abbreviated options are rejected."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{self.format_usage()}{self.prog}: {message}")


def run_command(
    build_parser: Callable[[], argparse.ArgumentParser],
    arguments: Sequence[str],
    handler: Callable[[argparse.Namespace], tuple[int, Any]],
    say: Say,
) -> int:
    """Parse, run `handler`, print its answer with `--json`, and return the exit code. A user's mistake never prints a traceback."""
    options = argparse.Namespace()
    try:
        _refuse_undecodable(arguments)
        build_parser().parse_args(arguments, options)
        code, answer = handler(options)
    except _UsageError as error:
        code, answer = 2, _refusal("UsageError", str(error), say)
    except argparse.ArgumentError as error:  # of the parser, which a program's own command cannot be added to
        code, answer = 1, _refusal("ParamsError", f"a declared command: {error}. Rename what it declares twice.", say)
    except SluiceError as error:
        code, answer = 1, _refusal(type(error).__name__, str(error), say) | dict(error.facts)
    except OSError as error:
        code, answer = 1, _refusal(type(error).__name__, _describe(error, getattr(options, "store", "here")), say)
    except MemoryError:
        code, answer = 1, _refusal("MemoryError", "out of memory. Run again with fewer workers, which need less.", say)
    except KeyboardInterrupt:
        code, answer = 130, _refusal("Interrupted", "interrupted; finished parts are kept, run again to continue", say)
    if "--json" in arguments:
        _print_json(answer)
    return code


def _refuse_undecodable(arguments: Sequence[str]) -> None:
    """Raise _UsageError for an argument whose bytes are no UTF-8: no name in a store is of that kind, and no library takes it."""
    for place, argument in enumerate(arguments, 1):
        if _printable(argument) != argument:
            shown = os.fsencode(argument).decode("utf-8", "backslashreplace")
            raise _UsageError(
                f"argument {place}, '{shown}': its bytes are not UTF-8; expected UTF-8. Rename what it names."
            )


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return an argument type: a whole number within bounds."""

    def number(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is not between {least} and {most}")
        return value

    return number


def amount(text: str) -> float:
    """Parse an argument: a finite number that is not below zero."""
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise argparse.ArgumentTypeError(f"{text} is not a finite number of at least 0")
    return value


def _refusal(kind: str, message: str, say: Say) -> dict[str, Any]:
    message = _printable(message)
    say(f"error {kind}: {message}")
    return {"error": kind, "message": message}


def _describe(error: OSError, store: object) -> str:
    return f"{error.filename or store}: {error.strerror or error}. Nothing that was promoted has changed."


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _print_json(answer: Any) -> None:
    try:
        print(json.dumps(answer, indent=1, default=str), flush=True)
    except BrokenPipeError:  # the reader closed the pipe; flushing at exit must not fail either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
