"""Declared functions: what an entry of a registry names as `package.module:name`, loaded when needed; and what they returned."""

import sys
from pkgutil import resolve_name
from typing import Any, TypeVar

from pipeline.core.errors import ParamsError

CheckedT = TypeVar("CheckedT")


def load_declared(declaration: str, field: str, name: str) -> Any:
    """Import what a field of a declaration names, such as the writer of an export format. Raises ParamsError naming all three."""
    module, _, attribute = name.partition(":")
    loaded = vars(sys.modules.get(module, sys))
    if module in sys.modules and attribute in loaded:
        return loaded[attribute]
    try:
        return resolve_name(name)
    except (AttributeError, ImportError, ValueError) as error:
        found = f"its {field} {name!r} cannot be imported ({type(error).__name__}: {error})"
        raise ParamsError(declaration, found, "`package.module:name` of something installed", CORRECT) from error


def require_type(value: object, kind: type[CheckedT], declaration: str, field: str) -> CheckedT:
    """Return what a declaration gives. Raises ParamsError naming the declaration if it is of another type."""
    if not isinstance(value, kind):
        found = f"its {field} gives {type_of(value)}"
        raise ParamsError(declaration, found, kind.__name__, f"Correct the declaration of {declaration}.")
    return value


def type_of(value: object) -> str:
    """Return the type of a value as messages name it."""
    return "None" if value is None else type(value).__name__


CORRECT = "Install what it belongs to, or correct the declaration."
