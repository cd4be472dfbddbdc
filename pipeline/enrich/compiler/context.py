"""Build context of a unit, as it is stored: all that a compiler needs, and nothing about the machine that it ran on."""

import json
import re
from collections.abc import Iterable, Sequence

from pipeline.enrich.compiler.compile_commands import Command
from pipeline.enrich.compiler.source_tree import BUILD, SOURCE

_PATHS = {
    "-I": "include_roots",
    "-iquote": "include_roots",
    "-isystem": "system_roots",
    "-idirafter": "system_roots",
    "-include": "forced_includes",
    "-imacros": "forced_macros",
}
_LISTS = {**_PATHS, "-D": "defines", "-U": "undefines"}
"""Keys of the options that can be repeated."""
_LOCAL = re.compile(
    r"(?<![\w./<>+-])/(?:[\w.+-]+/)*[\w.+-]+|[A-Za-z]:[\\/]|~[\w]*/|file:/|(?<![\w.+-])[\w.+-]+@[\w-]+\.\w+|\.\./|\\\\\w"
)
_LOCAL_TREE_PATH = re.compile(r"/|[A-Za-z]:[\\/]|file:|\.\.(/|\Z)")
_TREE_PATHS = frozenset({"unit", "generated", *_PATHS.values()})
_FIXED = frozenset({"compiler", "language", "standard", "options"})
"""Keys whose values come from fixed lists: a match with a user's name there is a coincidence."""
_USER = re.compile(rb"(?:/home/|/Users/|[\\/]Users[\\/]+)([^/\\\"'\s]+)")


def context_of(command: Command, generated: Sequence[str] = ()) -> str:
    """Return the context of a unit as JSON: its path, compiler, language, standard, roots, definitions and other options.

    `generated` are the generated files that it read.
    """
    context: dict[str, object] = {"unit": tree_path(command.path), "compiler": command.compiler}
    if generated:
        context["generated"] = [tree_path(path) for path in generated]
    lists: dict[str, list[str]] = {}
    following = iter(command.arguments)
    for argument in following:
        if argument in _LISTS:
            value = next(following)
            lists.setdefault(_LISTS[argument], []).append(tree_path(value) if argument in _PATHS else value)
        elif argument == "-x":
            context["language"] = next(following)
        elif argument.startswith("-std="):
            context["standard"] = argument.removeprefix("-std=")
        else:
            lists.setdefault("options", []).append(argument)
    return json.dumps({**context, **lists}, sort_keys=True, ensure_ascii=False)


def tree_path(path: str) -> str:
    """Return the path within the source, or below `<build>` for a generated file."""
    if path == SOURCE or path.startswith(f"{SOURCE}/"):
        return path[len(SOURCE) + 1 :] or "."
    return f"<{BUILD}>{path[len(BUILD) :]}"


def users_named_in(database: bytes) -> frozenset[str]:
    """Return the users whose home folders a database names."""
    return frozenset(name.decode("utf-8", "replace") for name in _USER.findall(database))


def count_local(contexts: Iterable[str], users: Iterable[str]) -> int:
    """Count the contexts that hold an absolute path, a path out of the tree, an address or a user of the database."""
    names = [re.compile(rf"\b{re.escape(user)}\b") for user in sorted(users)]
    parsed = (json.loads(context).items() for context in contexts)
    return sum(any(_is_local(key, value, names) for key, value in items) for items in parsed)


def _is_local(key: str, value: str | Sequence[str], names: Sequence[re.Pattern[str]]) -> bool:
    """Return whether a value names the machine or a user. A path within the source may have any name but not lead out."""
    texts = [value] if isinstance(value, str) else value
    if key in _TREE_PATHS:
        return any(_LOCAL_TREE_PATH.match(text) for text in texts)
    searched = (_LOCAL,) if key in _FIXED else (_LOCAL, *names)
    return any(pattern.search(text) for text in texts for pattern in searched)
