"""Overrides: values that one place, such as a file or an option, sets of a Params class; and the Params that layers give together.

A later layer has precedence, field by field. What no layer sets is the field's default.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from os.path import normpath
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from pipeline.core.errors import ParamsError, did_you_mean
from pipeline.core.params import Params
from pipeline.core.settings.fields import (
    ANY_NAME,
    NAME_OR_PATH,
    NO_VALUE,
    RELATIVE_PATH,
    entry_of,
    expected,
    field_at,
    inner_params,
    inside,
    item_of,
    leaf_fields,
    list_field,
    may_be_absent,
)
from pipeline.core.toml_text import parse_toml

OverriddenT = TypeVar("OverriddenT", bound=Params)
SET_OPTION = "--set"
BASE = "base"
"""First line of a recipe's file, which names the recipe that it begins with: no field."""
_FIELDS = "`python -m pipeline config` prints the fields, of a training `python -m trainer config`."
_MAX_SHOWN = 100
_MAX_STEPS = 64
"""Parts of a dotted name, as many as those of a key in a file may be."""
_PLAIN = (bool, int, float, str)
_FIELD = re.compile(r"(\w{1,64}): ")
"""The field that a fault of several fields is about, with which its message begins."""
_BARE_KEY = re.compile("[A-Za-z0-9_-]+")
_NAME = re.compile(r"""(?:[^="']|"(?:[^"\\]|\\.)*"|'[^']*')*""")
"""Name of a setting: all before the first equals sign outside of quotes."""


@dataclass(frozen=True)
class Overrides:
    """A layer: nested values of fields, and who sets them. Relative paths among them are relative to `folder`."""

    subject: str
    values: Mapping[str, Any]
    folder: Path = Path()
    lines: tuple[str, ...] = ()
    """Names that stand beside fields there, and set none."""


def setting(text: str, subject: str = SET_OPTION) -> Overrides:
    """Return the layer of a setting `FIELD=VALUE`: the value is TOML, or else a text. Raises ParamsError for what is none.

    A part of the name that holds a dot or an equals sign is quoted, as TOML does: `epoch_caps."a.b"=2`.
    """
    found = _NAME.match(text)
    name = found.group() if found else ""
    steps = _steps(name)
    if not text.startswith("=", len(name)) or not all(steps) or len(steps) > _MAX_STEPS:
        remedy = f"Write it as `normalize.filters.min_num_bytes=50`; {_FIELDS}"
        raise ParamsError(f"{subject} {text[:_MAX_SHOWN]}", "it sets no field", "FIELD=VALUE", remedy)
    return at(steps, _value_of(text[len(name) + 1 :]), subject)


def _steps(name: str) -> list[str]:
    """Return the parts of a dotted name; one that is empty if the name is none."""
    if not {'"', "'"} & set(name):
        return [step.strip() for step in name.split(".")]
    try:
        return list(next(_set_by(parse_toml(f"{name} = 0")))[0])
    except ValueError:
        return [""]


def dotted(path: Sequence[str]) -> str:
    """Return the dotted name of a field, as `setting` reads it."""
    return ".".join(step if _BARE_KEY.fullmatch(step) else json.dumps(step, ensure_ascii=False) for step in path)


def at(steps: Sequence[str], value: Any, subject: str) -> Overrides:
    """Return the layer that sets one field, given by the parts of its dotted name."""
    for step in reversed(steps):
        value = {step: value}
    return Overrides(subject, value)


def settings_of(values: Mapping[str, Any]) -> list[str]:
    """Return nested values as settings `FIELD=VALUE`."""
    return [f"{dotted(path)}={_as_toml(value)}" for path, value in _set_by(values)]


def layered(lower: Sequence[str], upper: Sequence[str], subject: str = SET_OPTION) -> list[str]:
    """Return settings below and above as one list: of a field, or a table and a field in it, the upper ones have precedence.

    Raises ParamsError for what is no setting.
    """
    set_above = [each for text in upper for each in _set_by(setting(text, subject).values)]
    kept: list[str] = []
    for text in lower:
        values: dict[str, Any] = {}
        fields = list(_set_by(setting(text, subject).values))
        left = [
            each for each in fields if not any(each[0] == above[0] or _contradict(each, above) for above in set_above)
        ]
        for path, value in left:
            values = _merged(values, at(path, value, subject).values)
        kept += [text] if left == fields else settings_of(values)
    return [*kept, *upper]


def _as_toml(value: Any) -> str:
    """Return a value as TOML writes it in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_as_toml(name)} = {_as_toml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def refuse_conflicts(layers: Sequence[Overrides]) -> None:
    """Raise ParamsError where two layers of one command set the same field to different values."""
    seen: dict[tuple[str, ...], tuple[str, Any]] = {}
    for layer in layers:
        for path, value in _set_by(layer.values):
            for other, (subject, earlier) in seen.items():
                if _contradict((other, earlier), (path, value)):
                    found = f"they set {dotted(path)} to {_shown(earlier)} and to {_shown(value)}"
                    raise ParamsError(f"{subject} and {layer.subject}", found, "one value", "Leave one of them out.")
            seen[path] = (layer.subject, value)


def _contradict(first: tuple[tuple[str, ...], Any], second: tuple[tuple[str, ...], Any]) -> bool:
    """Return whether two values are of one field, or one is of a field inside the other that is no table with room for it."""
    (outer, value), (inner, other) = sorted((first, second), key=lambda each: len(each[0]))
    return inner[: len(outer)] == outer and value != (other if inner == outer else {})


def combine(model: type[OverriddenT], layers: Sequence[Overrides], subject: str) -> OverriddenT:
    """Return the Params that layers, the lowest first, give together. Raises ParamsError naming layer, field and bounds."""
    values: dict[str, Any] = {}
    for layer in layers:
        values = _merged(values, _prepared(layer.values, model, layer, ()), model)
    try:
        return model.model_validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        raise _refusal(model, error, layers, subject) from None


def values_of(params: Params, only_set: bool = False) -> dict[str, Any]:
    """Return the values of Params as a layer holds them, those outside of identities included; with `only_set` no defaults."""
    names = (name for name in type(params).model_fields if not only_set or name in params.model_fields_set)
    return {name: _plain(getattr(params, name), only_set) for name in names}


def changed_fields(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the fields whose values differ, by their dotted names, each with its value before and now."""
    old, new = ({dotted(path): value for path, value in _set_by(values)} for values in (before, now))
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return {name: [old.get(name), new.get(name)] for name in names}


def difference_line(name: str, before: Any, now: Any) -> str:
    """Return a difference for people, its values as a file or `--set` takes them."""
    old, new = (NO_VALUE if value is None else json.dumps(value, ensure_ascii=False) for value in (before, now))
    return f"{name}: {old} -> {new}"


def _plain(value: Any, only_set: bool) -> Any:
    if isinstance(value, Params):
        return values_of(value, only_set)
    if isinstance(value, Mapping):
        return {str(name): _plain(each, only_set) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each, only_set) for each in value]
    return value.value if isinstance(value, Enum) else str(value) if isinstance(value, Path) else value


def _value_of(text: str) -> Any:
    """Return a value as TOML reads it. What is none, or a date, is a text."""
    try:
        parsed = parse_toml(f"value = {text}")
    except ValueError:
        return text.strip()
    value = parsed["value"]
    return value if parsed.keys() == {"value"} and isinstance(value, (*_PLAIN, list, dict)) else text.strip()


def _set_by(values: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _set_by(value, (*prefix, name))
        else:
            yield (*prefix, name), value


def _merged(
    lower: Mapping[str, Any], upper: Mapping[str, Any], model: type[Params] | None = None, path: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the values of both, the upper ones first. With `model`, an empty table above empties one of free keys."""
    both = dict(lower)
    for name, value in upper.items():
        below = both.get(name)
        is_nested = isinstance(below, Mapping) and isinstance(value, Mapping)
        if is_nested and (value or model is None or not _has_free_keys(model, (*path, name))):
            both[name] = _merged(below, value, model, (*path, name))  # type: ignore[arg-type]  # both are mappings
        else:
            both[name] = value
    return both


def _has_free_keys(model: type[Params], path: tuple[str, ...]) -> bool:
    """Return whether a field is a table of any keys, and no entry of one."""
    info = field_at(model, path)
    return info is not None and entry_of(info.annotation) is not None and info is not field_at(model, path[:-1])


def _prepared(value: Any, model: type[Params], layer: Overrides, path: tuple[str, ...]) -> Any:
    """Return values with None for its word, and with whole paths. Raises ParamsError for what JSON has no word for."""
    if isinstance(value, Mapping):
        return {str(name): _prepared(each, model, layer, (*path, str(name))) for name, each in value.items()}
    info = field_at(model, path)
    if info is not None and value == NO_VALUE and may_be_absent(info.annotation):
        return None
    if info is not None and isinstance(value, str) and "\0" not in value and _is_path(info, value):
        return normpath(layer.folder.absolute() / value)
    if isinstance(value, list) and info is not None and (field := list_field(info.annotation)):
        return {field: _prepared(value, model, layer, (*path, field))}
    if isinstance(value, list):
        return [_prepared(each, model, layer, (*path, str(number))) for number, each in enumerate(value)]
    if value is None or (isinstance(value, _PLAIN) and not (info and _is_path(info, value))):
        return value
    found, wanted = f"it is {_shown(value)}", expected(info) if info else "a value, and no date"
    raise ParamsError(f"{layer.subject}: {dotted(path)}", found, wanted, "Correct the value.")


def _is_path(info: FieldInfo, value: Any) -> bool:
    is_named = NAME_OR_PATH in info.metadata and "/" in str(value)
    return is_named or RELATIVE_PATH in info.metadata or Path in (info.annotation, *get_args(info.annotation))


def _refusal(model: type[Params], error: ValidationError, layers: Sequence[Overrides], subject: str) -> ParamsError:
    """Return the first fault as an error about the field and the layer that set it; a field that is not known comes first."""
    fault = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    path = _path(fault["loc"])
    is_of_several = fault["type"] in ("value_error", "assertion_error")
    found = str(fault["msg"]).removeprefix("Value error, ")
    if is_of_several and (named := _FIELD.match(found)) and field_at(model, (*path, named[1])):
        path, found = (*path, named[1]), found[named.end() :]
    setter = _setter(layers, path)
    place = f"{setter.subject if setter else subject}{': ' if path else ''}{dotted(path)}"
    if fault["type"] == "extra_forbidden":
        return _unknown(model, path, place, setter.lines if setter else ())
    if fault["type"] == "missing":
        remedy = "Set it, or begin with a recipe that does: `base`."
        if any(isinstance(step, int) for step in fault["loc"]):
            remedy = f"Set `{path[-1]}` in that item: a list is given whole, and completed by no `base`."
        return ParamsError(place, "it is missing", "a value", remedy)
    if is_of_several:
        remedy = "Correct those fields, or leave them out: the recipe has values of its own."
        found, _, wanted = found.partition("; expected ")
        return ParamsError(place, found, wanted or "fields that fit together", remedy)
    info = field_at(model, path)
    is_item = info is not None and info is field_at(model, path[:-1])
    if info is not None and is_item:
        info = inside(info)
    wanted = expected(info) if info else str(fault["msg"]).removeprefix("Input should be ")
    remedy = "Correct the value."
    if fault["loc"][-1] == "[key]":
        wanted, remedy = "a name of at least one character", "Correct the name."
    if fault["type"] == "string_type" and isinstance(fault["input"], bool | int | float):
        text = f'"{_as_toml(fault["input"])}"'
        if not is_item:  # of a list no item is set alone
            text = f"{dotted(path)}={text}"
            text = f"{SET_OPTION} '{text}'" if setter is not None and setter.subject == SET_OPTION else text
        remedy = f"Write it in quotes: `{text}`."
    return ParamsError(place, f"it is {_shown(fault['input'])}", wanted, remedy)


def _unknown(model: type[Params], path: tuple[str, ...], place: str, lines: Sequence[str]) -> ParamsError:
    """Return the error of a field that is none: the nearest name of its place, else one of that name elsewhere."""
    above = field_at(model, path[:-1])
    kind = above.annotation if above else None
    inner = (inner_params(kind) or entry_of(kind) or item_of(kind)) if above else model
    siblings = [] if inner in (None, NoneType) else [*(lines if above is None else ()), *inner.model_fields]
    prefix = "".join(f"{step}." for step in path[:-1])
    remedy = did_you_mean(path[-1], siblings)
    if path == (BASE,):
        remedy = "`base` is a line of a recipe's file alone: give the recipe itself by its name or file, as `--recipe quick`."
        return ParamsError(place, "it is no field", "a field of the recipe", remedy)
    by_name: dict[str, list[str]] = {}
    for name, _ in leaf_fields(model):
        by_name.setdefault(name.removesuffix(f".{ANY_NAME}").rpartition(".")[2], []).append(name)
    if remedy:
        names = remedy.removeprefix("Did you mean ").removesuffix("?").split(" or ")
        remedy = f"Did you mean {' or '.join(prefix + name for name in names)}?"
    elif near := did_you_mean(path[-1], by_name).removeprefix("Did you mean ").removesuffix("?"):
        remedy = f"Did you mean {' or '.join(by_name[near.split(' or ')[0]])}?"
    known = f"one of {', '.join(siblings)}" if siblings else "a field"
    return ParamsError(place, "there is no such field", known, remedy or _FIELDS)


def _path(location: tuple[int | str, ...]) -> tuple[str, ...]:
    """Return the parts of the dotted name of a place; an item of a list is named by its number, from 0."""
    return tuple(str(step) for step in location if step != "[key]")


def _setter(layers: Sequence[Overrides], path: tuple[str, ...]) -> Overrides | None:
    """Return the layer that sets a field last, or the fields below it."""
    for layer in reversed(layers):
        value: Any = layer.values
        for step in path:
            value = value.get(step, None) if isinstance(value, Mapping) else value if isinstance(value, list) else None
        if path and value is not None:
            return layer
    return None


def _shown(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]} ..."
