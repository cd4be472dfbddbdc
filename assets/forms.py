"""Launchpad forms: the Dagster config class that a Params class gives, and the Params of a filled form. Params alone validates.

Dagster refuses tuples, nested plain models and Literals, and shows an enum's names where commands and JSON show its values: so an
enum is rebuilt with its values as names, defaults are given as JSON, and bounds are part of the description.
"""

from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import dagster as dg
from pydantic import BaseModel, Field, ValidationError, create_model
from pydantic_core import PydanticUndefined, to_jsonable_python

from pipeline.core.errors import ParamsError
from pipeline.core.params import Params

ParamsT = TypeVar("ParamsT", bound=Params)


@cache
def form(params: type[Params]) -> type[dg.Config]:
    """Derive the Dagster form of a Params class: the same fields, described with their bounds, and the same defaults."""
    fields: dict[str, Any] = {}
    for name, info in params.model_fields.items():
        text = " ".join([*(info.description or "").split(), _bounds(info.metadata)]).strip()
        has_default = info.default is not PydanticUndefined or info.default_factory is not None
        default = _filled(info.get_default(call_default_factory=True)) if has_default else ...
        fields[name] = (_form_type(info.annotation), Field(default, description=text))
    name = params.__name__.removesuffix("Params") + "Config"
    created: type[dg.Config] = create_model(name, __base__=dg.Config, __doc__=params.__doc__, **fields)
    return created


def filled(params: Params) -> dg.Config:
    """Fill the form with these values."""
    return form(type(params))(**{name: _filled(getattr(params, name)) for name in type(params).model_fields})


def params_from(config: dg.Config, params: type[ParamsT]) -> ParamsT:
    """Return the Params of a filled form. Raises ParamsError naming each field that is out of its bounds, and its value."""
    try:
        return params.model_validate_json(config.model_dump_json(warnings=False))
    except ValidationError as error:
        found = "; ".join(
            f"{'.'.join(str(step) for step in fault['loc'])} is {fault['input']!r}: {fault['msg']}"
            for fault in error.errors()
        )
        raise ParamsError(
            f"launchpad form of {params.__name__}", found, "", "Correct the field and launch again."
        ) from error


def _bounds(metadata: list[Any]) -> str:
    """Write the bounds of a field for a person: `At least 1, at most 64.`"""
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than", "multiple_of": "a multiple of"}
    words |= {"min_length": "length at least", "max_length": "length at most", "pattern": "one of the form"}
    pairs = ((word, getattr(bound, name, None)) for bound in metadata for name, word in words.items())
    text = ", ".join(f"{word} {_written(value)}" for word, value in pairs if value is not None)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _written(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else (f"`{value}`" if isinstance(value, str) else str(value))


def _filled(value: Any) -> Any:
    return filled(value) if isinstance(value, Params) else to_jsonable_python(value)


def _form_type(kind: Any) -> Any:
    origin, arguments = get_origin(kind), [argument for argument in get_args(kind) if argument is not ...]
    if origin is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
        values = arguments or [member.value for member in kind]
        return Enum("_or_".join(values), {value: value for value in values})
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return form(kind)
    if origin in (tuple, Union, UnionType):
        inner: Any = Union.__getitem__(tuple(_form_type(argument) for argument in dict.fromkeys(arguments)))
        return list[inner] if origin is tuple else inner
    return kind
