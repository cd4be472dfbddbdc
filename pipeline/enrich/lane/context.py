"""The build context that is stored: what a compiler needs to know, and nothing of the machine it ran on."""

import json
import re
from collections.abc import Iterable

from pipeline.enrich.lane.commands import BUILD, SOURCE, Command

_FORCED = {"-include": "forced_includes", "-imacros": "forced_macros"}
_ROOTS = {"-I": "include_roots", "-iquote": "include_roots", "-isystem": "system_roots", "-idirafter": "system_roots"}
_LOCAL = re.compile(
    r"(?<![\w./<>+-])/(?:[\w.+-]+/)*[\w.+-]+|[A-Za-z]:[\\/]|~[\w]*/|file:/|[\w.+-]+@[\w-]+\.\w+|\.\./|\\\\\w"
)
_USER = re.compile(rb"(?:/home/|/Users/|[\\/]Users[\\/]+)([^/\\\"'\s]+)")


def context_of(command: Command) -> str:
    """The context of a unit as JSON: its identity, compiler, language, standard, roots, definitions and other options."""
    context: dict[str, object] = {"unit": tree_path(command.path), "compiler": command.compiler}
    lists: dict[str, list[str]] = {}
    words = iter(command.arguments)
    for word in words:
        if word in _ROOTS or word in _FORCED:
            lists.setdefault(_ROOTS.get(word) or _FORCED[word], []).append(tree_path(next(words)))
        elif word in ("-D", "-U"):
            lists.setdefault("defines" if word == "-D" else "undefines", []).append(next(words))
        elif word == "-x":
            context["language"] = next(words)
        elif word.startswith("-std="):
            context["standard"] = word.removeprefix("-std=")
        else:
            lists.setdefault("options", []).append(word)
    return json.dumps({**context, **lists}, sort_keys=True, ensure_ascii=False)


def tree_path(path: str) -> str:
    """The path within the source; below `<build>` for what configuring made."""
    if path == SOURCE or path.startswith(f"{SOURCE}/"):
        return path[len(SOURCE) + 1 :] or "."
    return f"<{BUILD}>{path[len(BUILD) :]}"


def users_named_in(database: bytes) -> frozenset[str]:
    """The users whose folders a database names."""
    return frozenset(name.decode("utf-8", "replace") for name in _USER.findall(database))


def count_local(contexts: Iterable[str], users: Iterable[str]) -> int:
    """Contexts that hold an absolute path, a way out of the tree, an address or a user of the database."""
    names = [re.compile(rf"\b{re.escape(user)}\b") for user in sorted(users)]
    return sum(
        any(_LOCAL.search(value) or any(name.search(value) for name in names) for value in _texts(json.loads(context)))
        for context in contexts
    )


def _texts(context: dict[str, object]) -> Iterable[str]:
    for value in context.values():
        yield from [value] if isinstance(value, str) else value  # type: ignore[misc]  # lists of strings else
