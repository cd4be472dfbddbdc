"""Regular expressions of the pipeline: those of its modules, and those that are written where they are used."""

import ast
import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Any

import re2

import pipeline

_LIBRARIES: dict[str, Any] = {"re": re, "re2": re2}
_COMPILED = (re.Pattern, type(re2.compile("")))
_ANCHORED = frozenset({"match", "fullmatch"})
_MAX_DEPTH = 4
_MADE = frozenset({"compile", "search", "match", "fullmatch", "sub", "findall", "finditer", "split"})


@dataclasses.dataclass(frozen=True)
class Expression:
    """A compiled expression, the name or line where it stands, and the methods by which texts are tried."""

    where: str
    pattern: Any
    methods: frozenset[str]

    @property
    def text(self) -> str:
        """The expression as written."""
        found = self.pattern.pattern
        return found.decode("latin-1") if isinstance(found, bytes) else str(found)

    @property
    def flags(self) -> int:
        """The flags with which it can be parsed as an expression over characters."""
        flags = self.pattern.flags if isinstance(self.pattern, re.Pattern) else 0
        return flags & ~re.UNICODE if isinstance(self.pattern.pattern, bytes) else flags

    def runs(self) -> list[Callable[[str], object]]:
        """Return the ways in which a text is tried."""
        tried = [getattr(self.pattern, method) for method in sorted(self.methods & _ANCHORED)]
        if self.methods - _ANCHORED:
            tried.append(lambda text: sum(1 for _ in self.pattern.finditer(text)))
        if isinstance(self.pattern.pattern, bytes):
            return [lambda text, run=run: run(text.encode("latin-1", "replace")) for run in tried]
        return tried


@cache
def expressions() -> list[Expression]:
    """Return every expression of the pipeline once, in the order of where they stand."""
    modules = _modules()
    trees = dict(_trees(modules))
    methods = _methods(trees)
    found: dict[tuple[str, Any, int], Expression] = {}
    for name, module in sorted(modules.items()):
        for attribute, value in sorted(vars(module).items()):
            for pattern in _patterns(value):
                used = methods.get(attribute) if pattern is value else None
                _add(found, Expression(f"{name}:{attribute}", pattern, used or frozenset({"finditer"})))
        for expression in _written_in(name, module, trees[name]) if name in trees else ():
            _add(found, expression)
    return sorted(found.values(), key=lambda each: each.where)


@cache
def _modules() -> dict[str, ModuleType]:
    return {
        found.name: importlib.import_module(found.name)
        for found in pkgutil.walk_packages(pipeline.__path__, "pipeline.")
        if not found.name.endswith("__main__")
    }


def _trees(modules: Mapping[str, ModuleType]) -> Iterator[tuple[str, ast.Module]]:
    """Yield the trees of the modules that speak of an expression by its name, or of a library of expressions."""
    named = {
        name for module in modules.values() for name, value in vars(module).items() if isinstance(value, _COMPILED)
    }
    spoken = re.compile(rf"\b(?:(?:{'|'.join(sorted(named))})\b|(?:{'|'.join(_LIBRARIES)})\.)")
    for name, module in modules.items():
        source = _source(module)
        if spoken.search(source):
            yield name, ast.parse(source)


def _add(found: dict[tuple[str, Any, int], Expression], expression: Expression) -> None:
    key = (type(expression.pattern).__module__, expression.pattern.pattern, expression.flags)
    known = found.get(key, expression)
    found[key] = Expression(known.where, known.pattern, known.methods | expression.methods)


def _source(module: ModuleType) -> str:
    assert module.__file__ is not None
    with open(module.__file__, encoding="utf-8") as file:
        return file.read()


def _patterns(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the expressions in a value of a module: in tables, and in the fields of records too."""
    if isinstance(value, _COMPILED):
        yield value
    elif depth < _MAX_DEPTH:
        for each in _members(value):
            yield from _patterns(each, depth + 1)


def _members(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, each.name, None) for each in dataclasses.fields(value)]
    return []


def _methods(trees: Mapping[str, ast.Module]) -> dict[str, frozenset[str]]:
    """Return by which methods each name is used; `finditer` for one that is also used in another way."""
    found: dict[str, frozenset[str]] = {}
    for tree in trees.values():
        nodes = list(ast.walk(tree))
        called = {
            id(node.value): node.attr
            for node in nodes
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found[node.id] = found.get(node.id, frozenset()) | {called.get(id(node), "finditer")}
    return found


def _written_in(name: str, module: ModuleType, tree: ast.Module) -> Iterator[Expression]:
    """Yield the expressions that calls such as `re.search("...", text)` hold, as far as the module alone tells them."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for call, library, method in _calls_of_libraries(function):
            # What is compiled in a module is one of its names.
            if method in ("compile", "escape", "purge") or not call.args:
                continue
            written = _value(call.args[0], module)
            if written is not None:
                flags = [_value(each, module) for each in _flags(call)] if library == "re" else []
                pattern = _LIBRARIES[library].compile(written, *flags)
                yield Expression(f"{name}:{function.name}", pattern, frozenset({method}))


def _calls_of_libraries(function: ast.AST) -> Iterator[tuple[ast.Call, str, str]]:
    """Yield the calls of a library's functions, such as `re.search(...)`, with the library and the function."""
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=library), attr=method)) if library in _LIBRARIES:
                yield node, library, method


def made_of_values() -> set[str]:
    """Return the functions that make an expression of `re` of what they are given, which no module holds."""
    found = set()
    for name, module in _modules().items():
        for function in ast.walk(ast.parse(_source(module))):
            for call, library, method in _calls_of_libraries(function) if isinstance(function, ast.FunctionDef) else ():
                if library == "re" and method in _MADE and _value(call.args[0], module) is None:
                    found.add(f"{name}:{function.name}")
    return found


def _value(expression: ast.expr, module: ModuleType) -> Any:
    """Return what an expression of Python is in its module; None if it has names of a function."""
    try:
        return eval(compile(ast.Expression(expression), module.__name__, "eval"), dict(vars(module)))
    except NameError:
        return None


def _flags(call: ast.Call) -> list[ast.expr]:
    """Return the flags of a call, wherever they stand."""
    return [each for each in (*call.args[1:], *(key.value for key in call.keywords)) if "re." in ast.unparse(each)][-1:]
