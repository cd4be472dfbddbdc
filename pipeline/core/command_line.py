"""Command lines: argument types with bounds, errors in one line that name whole commands, one JSON value on stdout, the exit code.

Exit codes: 0 done, 1 error or blocked, 2 wrong usage, 130 interrupted.
"""

import argparse
import atexit
import errno
import json
import math
import os
import re
import shlex
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path, PosixPath
from typing import Any, NoReturn

from pipeline.core.errors import MAX_MESSAGE, SluiceError, both_ends, did_you_mean

Say = Callable[[str], None]
_REQUIRED = "the following arguments are required: "
"""Beginning of a message of argparse."""
_WHOLE = re.compile(r"[-+]?[0-9]{1,19}")
_PLACE = re.compile(r"0|[1-9][0-9]{0,11}")
_MAX_SHOWN = 1_000
"""Characters of a wrong argument that are shown."""


_NAMED_COMMAND = re.compile(r"`(python -m (?:pipeline|trainer) [a-z][^`\n]*)`")
_COMPLETE_ENDS = ("--help", "...")
"""Ends of commands that need no corpus and no store."""
INTERRUPTED = "interrupted; finished parts are kept, run again to continue"
OF_A_CORPUS = frozenset(
    {
        "pipeline card",
        "pipeline diff",
        "pipeline export",
        "pipeline gates",
        "pipeline promote",
        "pipeline report",
        "pipeline show",
        "pipeline snapshot export",
        "pipeline which",
        "pipeline why",
        "trainer accept",
        "trainer bench",
        "trainer observe",
        "trainer smoke",
        "trainer train",
        "trainer verify-loader",
    }
)
"""Commands about a corpus that exists: what `build`, `snapshot import` and `vocabulary` make is named by them."""


_OF_LAUNCHPAD = {"--precision": "--dtype"}
"""Names of fields of the launchpad -> the options of commands that set the same and are named otherwise."""


class _UsageError(Exception):
    """Arguments that the parser rejects."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors `run_command` prints. Abbreviated options are rejected."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        message = message.replace(_REQUIRED, "found nothing; expected also ")
        end = "" if message.endswith((".", "?")) else "."
        raise _UsageError(f"{self.prog}: {message[:_MAX_SHOWN]}{end} `{self.prog} --help` describes its arguments.")

    def parse_or_exit(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse the arguments of a program without `--json`; end the process with code 2 and one line if they are wrong."""
        try:
            return self.parse_args(arguments)
        except _UsageError as error:
            self.exit(2, f"error: {error}\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse what is not known where it is met: the parser of the command knows which of its options is near."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            name = unknown[0].partition("=")[0]
            near = did_you_mean(_OF_LAUNCHPAD.get(name, name), self._option_string_actions)
            self.error(f"found {' '.join(unknown)[:_MAX_SHOWN]!r}; expected its options alone. {near}".strip())
        return options, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(name) for name in action.choices]
            found = f"found {str(value)[:_MAX_SHOWN]!r}; expected one of {', '.join(names)}"
            raise argparse.ArgumentError(action, f"{found}. {did_you_mean(str(value), names)}".strip())


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what every command has: how its answer is printed, and that nothing else is."""
    parser.add_argument("--json", action="store_true", help="print one JSON value on stdout")
    quiet = "print the answer and errors alone, no progress and no words"
    parser.add_argument("--quiet", action="store_true", help=quiet)


_REMEDIES = {
    errno.ENOENT: "expected an existing path. Correct the name, or make its folder.",
    errno.ENOTDIR: "expected a folder. Name a folder, or another place.",
    errno.EISDIR: "expected a file. Name a file, or another place.",
    errno.EEXIST: "expected a folder or a new name. Name another place.",
    errno.ELOOP: "expected a path without circles of links. Correct the link.",
    errno.ENAMETOOLONG: "expected a shorter name. Shorten it.",
    errno.EROFS: "expected a place that can be written. Name another, such as a copy.",
    errno.EIO: "expected a disk that can be read and written. Look at its health, or restore from a copy.",
    errno.EFBIG: "expected files of that size to be allowed. Raise the limit, as by `ulimit -f`, then run again.",
    errno.EMFILE: "expected more open files to be allowed. Raise the limit, as by `ulimit -n`, then run again.",
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM),
        "expected a path that this user may use. Name another, or ask its owner for the right.",
    ),
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT), "expected free space. Free some or name another place, then run again."
    ),
}
"""Number of an error of the system -> what is expected of a path, and what to do next."""

OUT_OF_MEMORY = "out of memory. Run again with fewer workers, which need less."


def run_command(
    build_parser: Callable[[], argparse.ArgumentParser],
    arguments: Sequence[str],
    handler: Callable[[argparse.Namespace], tuple[int, Any]],
    say: Say,
) -> int:
    """Parse, run `handler`, print its answer with `--json`, and return the exit code.

    A user's mistake never prints a traceback; a defect of the code does, and ends in a sentence as well.
    """
    options = argparse.Namespace()
    try:
        _open_closed_streams()
        _refuse_undecodable(arguments)
        build_parser().parse_args(arguments, options)
        options.given_store = given_store(arguments)
        code, answer = handler(options)
    except _UsageError as error:
        code, answer = 2, _refusal("UsageError", str(error), say)
    except argparse.ArgumentError as error:  # of the parser, which a program's own command cannot be added to
        code, answer = 1, _refusal("ParamsError", f"a declared command: {error}. Rename what it declares twice.", say)
    except SluiceError as error:
        message = with_options(str(error), getattr(options, "corpus", None) or "", given_store(arguments))
        code, answer = 1, _refusal(type(error).__name__, message, say) | dict(error.facts)
    except OSError as error:
        message = describe_failure(error, f"stdout or the store {getattr(options, 'store', 'here')}")
        code, answer = 1, _refusal(type(error).__name__, message, say)
    except MemoryError:
        code, answer = 1, _refusal("MemoryError", OUT_OF_MEMORY, say)
    except KeyboardInterrupt:
        code, answer = 130, _refusal("Interrupted", INTERRUPTED, say)
    except BaseException as error:
        if isinstance(error, SystemExit) and "given_store" not in options:  # of the parser, which has printed its help
            raise
        traceback.print_exc()  # also of a library that ends the process: the command has not done what it was asked for
        message = _told_defect(error, getattr(options, "corpus", None) or "")
        code, answer = 1, _refusal(type(error).__name__, message, say) | {"defect": describe_defect(error)}
    if "--json" in arguments:
        print_answer(json.dumps(answer, indent=1, default=str))
    return code


def given_store(arguments: Sequence[str]) -> str | None:
    """Return the store that the arguments of a command name, as they do; None for the one that every command has."""
    named = None
    for word, following in pairwise([*arguments, ""]):
        name, mark, value = word.partition("=")
        if name == "--store":
            named = value if mark else following
    return named


def _open_closed_streams() -> None:
    """Open the null device for what a shell has closed: the next file, as of a store, would get what libraries print there.

    Raises _UsageError where that is stdout, for the answer would be lost.
    """
    closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    for name in closed:
        setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w", encoding="utf-8"))
    if "stdout" in closed:
        raise _UsageError("stdout: it is closed; expected an open one, for the answer. Open it, as by `> /dev/null`.")


def _refuse_undecodable(arguments: Sequence[str]) -> None:
    """Raise _UsageError for an argument whose bytes are no UTF-8: no name in a store is of that kind, and no library takes it."""
    for place, argument in enumerate(arguments, 1):
        if _printable(argument) != argument:
            shown = os.fsencode(argument).decode("utf-8", "backslashreplace")
            raise _UsageError(
                f"argument {place}, '{shown}': its bytes are not UTF-8; expected UTF-8. Rename what it names."
            )


def shell_command(command: str, *arguments: str, corpus: str = "", of: str | None = None, store: object = None) -> str:
    """Return a command, such as `pipeline show`, with its arguments quoted, as people paste it."""
    return f"python -m {command}{_joined(arguments)}{_named_options(corpus, of, store)}"


def with_options(message: str, corpus: str = "", store: object = None) -> str:
    """Return a message whose commands, in backticks, are about a corpus and in a store: those that name none themselves."""

    def completed(found: re.Match[str]) -> str:
        text = found.group(1)
        if text.endswith(_COMPLETE_ENDS):
            return found.group()
        is_of_corpus = any(f"{text} ".startswith(f"python -m {each} ") for each in OF_A_CORPUS)
        takes_corpus = is_of_corpus and not any(f"{name} " in text for name in ("--corpus", "--snapshot"))
        return f"`{text}{_named_options(corpus if takes_corpus else '', None, None if '--store ' in text else store)}`"

    return _NAMED_COMMAND.sub(completed, message)


def _named_options(corpus: str, of: str | None, store: object) -> str:
    options = {"--corpus": corpus, "--of": of, "--store": store}
    return _joined([word for name, value in options.items() if value for word in (name, str(value))])


def _joined(words: Sequence[str]) -> str:
    return "".join(f" {shlex.quote(word)}" for word in words)


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return an argument type: a whole number within bounds."""

    def number(text: str) -> int:
        value = int(text) if _WHOLE.fullmatch(text) else None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"found {text!r}; expected a whole number from {least} to {most}")
        return value

    return number


LAST_STEP = 10_000_000
"""Last step that a command of a training takes; it bounds the numbers of its rows and checkpoints too."""
STEPS_ARGUMENT = whole_number(1, LAST_STEP)


def place_number(text: str) -> int | None:
    """Parse the number of a row or a slot as names of rows have it; None for any other spelling, such as one with leading zeros."""
    return int(text) if _PLACE.fullmatch(text) else None


def amount(text: str) -> float:
    """Parse an argument: a finite number that is not below zero."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise argparse.ArgumentTypeError(f"found {text!r}; expected a finite number of at least 0")
    return value


def file_path(text: str) -> Path:
    """Parse an argument: the path of a file or folder. An empty one, as of a variable that is not set, is not the folder here.

    Nor is `-`, which elsewhere is stdin or stdout, a file of that name.
    """
    if text == "-":
        raise argparse.ArgumentTypeError(
            "found '-'; expected a path, as stdin and stdout are not taken; `./-` is a file"
        )
    if not text:
        raise argparse.ArgumentTypeError("found ''; expected a path, such as `.` for the folder here")
    return Path(text)


class OutputPath(PosixPath):
    """Path that a command writes: no part of the store may be one."""


def output_path(text: str) -> OutputPath:
    """Parse an argument: the path of what is written, as `file_path` does."""
    return OutputPath(file_path(text))


def given_name(text: str) -> str:
    """Parse an argument: a name of something. An empty one, as of a variable that is not set, is not the same as none."""
    if not text:
        raise argparse.ArgumentTypeError("found ''; expected a name")
    return text


def given_reason(text: str) -> str:
    """Parse an argument: why something is done. A blank one, as of a variable that is not set, says nothing."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"found {text!r}; expected why, in words")
    return text


def _refusal(kind: str, message: str, say: Say) -> dict[str, Any]:
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in _printable(message))
    # Names of files come from recipes too, and an escape is longer than its character.
    message = both_ends(shown, MAX_MESSAGE)
    say(f"error {kind}: {message}")
    return {"error": kind, "message": message}


UNMOVED = "Nothing that was promoted has changed."
"""End of the words about an error, unless it comes of a promotion, whose ref may have moved."""


def describe_failure(error: OSError, unnamed: str = "stdout", left: str = UNMOVED) -> str:
    """Describe an error of the system: the path, else `unnamed`; what was found, is expected of it, is to do and is left."""
    remedy = _REMEDIES.get(error.errno or 0, "expected no such error. Look at that path, then run again.")
    # Of a number libraries have words of their own, such as Arrow's.
    found = os.strerror(error.errno) if error.errno in _REMEDIES else error.strerror or error
    return f"{error.filename or unnamed}: {found}; {remedy} {left}"


def describe_defect(error: BaseException) -> str:
    """Describe an error of the code itself in one line: its kind, the beginning of its words, and where it was raised."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    try:
        said = str(error)
    except Exception:  # that of a library may fail itself
        said = "without words"
    words = f"{type(error).__name__}: {' '.join(said[:500].split())}".removesuffix(": ")
    return f"{words} ({Path(place.filename).name}:{place.lineno})"


_AT = "at "
"""Beginning of the notes of `placed`: libraries have notes too."""


@contextmanager
def placed(where: str) -> Iterator[None]:
    """Mark a defect of the code with what broke, such as a stage, which the command line then names."""
    try:
        yield
    except (SluiceError, OSError, MemoryError):
        raise
    except Exception as error:
        error.add_note(f"{_AT}{where}")
        raise


def _told_defect(error: BaseException, corpus: str) -> str:
    """Return the sentence about a defect: at what the code broke, as `placed` noted, else that the command did."""
    notes = [note.removeprefix(_AT) for note in getattr(error, "__notes__", []) if note.startswith(_AT)]
    command = f"the command, of corpus {corpus}," if corpus else "the command"
    where, left = (notes[0], f" {UNMOVED}") if notes else (command, "")
    return f"{where} raised {describe_defect(error)}.{left} Report it with the traceback above this line."


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def end_process(code: int) -> NoReturn:
    """End the process with an exit code, as at the end of a program, but for what it has loaded, which goes with it.

    Taking that apart object by object takes a third as long as loading it. Call it at the very end of a command line.
    """
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as the interpreter does
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # of a stream that is closed: the interpreter has words for that
        sys.exit(code)
    os._exit(code)


def print_answer(text: str) -> None:
    """Print a line of the answer on stdout at once; what follows is for nobody where the reader has closed the pipe."""
    try:
        print(text, flush=True)
    except BrokenPipeError:  # flushing at exit must not fail either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
