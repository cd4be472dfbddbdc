"""Launchpad forms: the Dagster config class that a Params class gives, and the Params of a filled form. Params alone validates.

A form of overrides has no values of its own: what is not set is what the recipe says, whatever the recipe is.

Dagster refuses tuples, nested plain models and Literals, and shows an enum's names where commands and JSON show its values: so an
enum is rebuilt with its values as names, defaults are given as JSON, and bounds are part of the description.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Optional, TypeVar, Union, get_args, get_origin

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, field_validator
from pydantic_core import PydanticUndefined, to_jsonable_python

from pipeline.core.errors import ParamsError
from pipeline.core.params import Params
from pipeline.core.settings.fields import described, expected, field_at
from pipeline.core.settings.overrides import dotted

ParamsT = TypeVar("ParamsT", bound=Params)
CORRECT_AND_LAUNCH = "Correct the field and launch again."
"""Remedy of a refused field of the launchpad."""


@dataclass(frozen=True)
class NamedIn:
    """Annotation of a field that holds a registered name: the form offers the names, and a launch with another one is refused."""

    names: Callable[[], Sequence[str]]


class EmptyFields(dg.Config):
    """Base of all forms: a field that is left empty is None, for which Params have a sentence, and pydantic an error."""

    @field_validator("*", mode="wrap")
    @classmethod
    def _taking_none(cls, value: Any, validate: Callable[[Any], Any]) -> Any:
        return None if value is None else validate(value)


class _OverridesParams(Params):
    """Base of all overrides: their fields bring descriptions, and searching each for docstrings takes a second of every start."""

    model_config = ConfigDict(use_attribute_docstrings=False)


@cache
def form(params: type[Params]) -> type[dg.Config]:
    """Derive the Dagster form of a Params class: the same fields, described with their bounds, and the same defaults."""
    fields: dict[str, Any] = {}
    for name, info in params.model_fields.items():
        has_default = info.default is not PydanticUndefined or info.default_factory is not None
        default = _filled(info.get_default(call_default_factory=True)) if has_default else ...
        fields[name] = (_form_type(info.annotation, info.metadata), Field(default, description=described(info)))
    return _config_class(params, "Config", fields)


@cache
def overrides_of(params: type[Params]) -> type[Params]:
    """Derive the Params of what a launch may set otherwise than its recipe: the same fields, none of them set."""
    fields: dict[str, Any] = {}
    for name, info in params.model_fields.items():
        table = _table_of(info.annotation)
        if table is not None:
            inner = overrides_of(table)
            fields[name] = (inner, Field(default_factory=inner, description=info.description))
        else:
            unset = copy(info)
            unset.default, unset.default_factory = None, None
            unset.description = f"{info.description or ''} Unset: as the recipe says.".strip()
            fields[name] = (Optional.__getitem__(info.annotation), unset)
    name = params.__name__.removesuffix("Params")
    created: type[Params] = create_model(
        f"{name}OverridesParams", __base__=_OverridesParams, __doc__=params.__doc__, **fields
    )
    return created


def _table_of(kind: Any) -> type[Params] | None:
    """Return the Params class of a field of one table, which may be absent; None for another field."""
    kinds = [each for each in get_args(kind) or (kind,) if each is not NoneType]
    is_table = len(kinds) == 1 and isinstance(kinds[0], type) and issubclass(kinds[0], Params)
    return kinds[0] if is_table and get_origin(kind) in (None, Union, UnionType) else None


def without_unset(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested values without None, and without tables that hold nothing else. A table that is set empty stays."""
    found = {name: without_unset(each) if isinstance(each, Mapping) else each for name, each in values.items()}
    return {name: each for name, each in found.items() if each is not None and (each != {} or values[name] == {})}


def overrides_form(params: type[Params]) -> type[dg.Config]:
    """Derive the form of what a launch may set otherwise than its recipe."""
    return form(overrides_of(params))


def filled(params: Params) -> dg.Config:
    """Fill the form with these values."""
    return form(type(params))(**{name: _filled(getattr(params, name)) for name in type(params).model_fields})


def params_from(config: dg.Config | Mapping[str, Any], params: type[ParamsT]) -> ParamsT:
    """Return the Params of a filled form, or of its part of a run config.

    Raises ParamsError naming each field that is out of its bounds, and its value.
    """
    try:
        if isinstance(config, dg.Config):
            values = config.model_dump(mode="json", warnings=False)
            return params.model_validate_json(json.dumps(values))  # pydantic's own words for infinity are null
        return params.model_validate(config)
    except ValidationError as error:
        raise _refusal(params, error) from None


def overridden(config: dg.Config | Mapping[str, Any], params: ParamsT, place: str = "") -> ParamsT:
    """Return the recipe's Params with what a form of overrides sets. Raises ParamsError as `params_from` does."""
    found = (
        config if isinstance(config, Mapping) else {name: getattr(config, name) for name in type(params).model_fields}
    )
    values: dict[str, Any] = {}
    for name, info in type(params).model_fields.items():
        own, given = getattr(params, name), found.get(name)
        if isinstance(own, Params):
            values[name] = overridden({} if given is None else given, own, f"{place}{name}.")
        elif given is not None and _table_of(info.annotation):
            values[name] = without_unset(to_jsonable_python(given)) or own
        else:
            values[name] = own if given is None else to_jsonable_python(given)
    try:
        return type(params).model_validate(values)
    except ValidationError as error:
        raise _refusal(type(params), error, place) from None


def _config_class(params: type[Params], suffix: str, fields: dict[str, Any]) -> type[dg.Config]:
    name = params.__name__.removesuffix("Params") + suffix
    created: type[dg.Config] = create_model(name, __base__=EmptyFields, __doc__=params.__doc__, **fields)
    return created


def _refusal(params: type[Params], error: ValidationError, place: str = "") -> ParamsError:
    faults = {dotted([str(step) for step in fault["loc"]]): fault for fault in error.errors()}
    inputs = {name: "null" if fault["input"] is None else repr(fault["input"]) for name, fault in faults.items()}
    found = ", ".join(f"{place}{name} is {shown}" for name, shown in inputs.items())
    wanted = [_wanted(params, fault["loc"], fault["type"]) or _in_words(fault["msg"]) for fault in faults.values()]
    of = re.sub("([a-z])([A-Z])", r"\1 \2", params.__name__.removesuffix("Params")).lower()
    return ParamsError(f"launchpad form of {of}", found, "; and ".join(wanted), CORRECT_AND_LAUNCH)


def _in_words(message: str) -> str:
    return message.removeprefix("Input should be ").removeprefix("Value error, ")


def _wanted(params: type[Params], location: Sequence[int | str], fault: str) -> str:
    """Return the names, or kind, bounds and unit, of a field; nothing for a table's entry, or where a validator has words."""
    if fault == "value_error":
        return ""
    path = tuple(map(str, location))
    info = field_at(params, path)
    if info is not None and (named := _named_in(info.metadata)):
        return f"one of {', '.join(named.names())}"
    return expected(info) if info is not None and info is not field_at(params, path[:-1]) else ""


def _filled(value: Any) -> Any:
    return filled(value) if isinstance(value, Params) else to_jsonable_python(value)


def name_choice(names: Sequence[str]) -> type[Enum]:
    """Return the type of a config field that takes one of these names: Dagster refuses any other before a run starts."""
    return Enum("_or_".join(names), {name: name for name in names})  # type: ignore[return-value]


def _named_in(metadata: Sequence[Any]) -> NamedIn | None:
    return next((each for each in metadata if isinstance(each, NamedIn)), None)


def _form_type(kind: Any, metadata: Sequence[Any] = ()) -> Any:
    if named := _named_in(metadata):
        return name_choice(named.names())
    origin, arguments = get_origin(kind), [argument for argument in get_args(kind) if argument is not ...]
    if origin is Annotated:
        return _form_type(arguments[0])
    if origin is Mapping:
        mapping: Any = Mapping
        return mapping[str, _form_type(arguments[1])]
    if origin is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
        return name_choice([*arguments] or [member.value for member in kind])
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return form(kind)
    if origin in (tuple, Union, UnionType):
        inner: Any = Union.__getitem__(tuple(_form_type(argument) for argument in dict.fromkeys(arguments)))
        return list[inner] if origin is tuple else inner
    return kind
