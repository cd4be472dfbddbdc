"""Fields of Params by dotted names such as `normalize.filters.max_num_bytes`: kinds, bounds, words for people, JSON Schema."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from pipeline.core.params import Params

ANY_NAME = "NAME"
"""Step of a dotted name that stands for any key of a mapping, as in `builds.NAME.max_units`."""
NO_VALUE = "none"
"""Word that sets a field that may be None to None: TOML has none."""
RELATIVE_PATH = "a path relative to the file that names it"
"""Annotation of a field of text that is such a path; a field of the type Path is one too."""
NAME_OR_PATH = "a name, or with a slash in it a path relative to the file that names it"
"""Annotation of a field of text that is one of them."""
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", Path: "a path"}
_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than", "multiple_of": "a multiple of"}
_BOUNDS |= {"min_length": "length at least", "max_length": "length at most", "pattern": "one of the form"}


def field_at(model: type[Params], path: Sequence[str]) -> FieldInfo | None:
    """Return the field that a dotted name names, in parts, or the mapping or list that it names an entry of. None for no field."""
    info = model.model_fields.get(path[0]) if path else None
    if info is None or len(path) == 1:
        return info
    entry = entry_of(info.annotation) or item_of(info.annotation)
    if entry is not None:
        return field_at(entry, path[2:]) if len(path) > 2 and entry is not NoneType else info
    inner = inner_params(info.annotation)
    return field_at(inner, path[1:]) if inner else None


def leaf_fields(model: type[Params], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Iterate over the fields of a Params class that hold no Params, each with its dotted name."""
    for name, info in model.model_fields.items():
        path = f"{prefix}{name}"
        inner, entry = inner_params(info.annotation), entry_of(info.annotation)
        if inner is not None:
            yield from leaf_fields(inner, f"{path}.")
        elif entry is not None and entry is not NoneType:
            yield from leaf_fields(entry, f"{path}.{ANY_NAME}.")
        else:
            yield (f"{path}.{ANY_NAME}" if entry else path), info


def inner_params(annotation: Any) -> type[Params] | None:
    """Return the Params class that a field holds, or may hold, if it does."""
    candidates = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return next((each for each in candidates if isinstance(each, type) and issubclass(each, Params)), None)


def entry_of(annotation: Any) -> Any:
    """Return the Params class of a mapping's values, NoneType for other values, and None for what is no mapping."""
    origin = get_origin(annotation)
    if not (isinstance(origin, type) and issubclass(origin, Mapping)):
        return None
    return inner_params(get_args(annotation)[1]) or NoneType


def item_of(annotation: Any) -> Any:
    """Return the Params class of a list's items, NoneType for other items, and None for what is no list."""
    return (inner_params(get_args(annotation)[0]) or NoneType) if get_origin(annotation) is tuple else None


def list_field(annotation: Any) -> str:
    """Return the field of Params that a list in their place is the value of; nothing if they take none."""
    return getattr(inner_params(annotation), "list_field", "")


def inside(info: FieldInfo) -> FieldInfo:
    """Return what a mapping or a list holds as a field of its own: its kind, its bounds, and what the whole means."""
    kinds = get_args(info.annotation)
    found = FieldInfo.from_annotation(kinds[0 if item_of(info.annotation) else 1])
    found.description = info.description
    return found


def may_be_absent(annotation: Any) -> bool:
    """Return whether a field may be None."""
    return get_origin(annotation) in (Union, UnionType) and NoneType in get_args(annotation)


def described(info: FieldInfo) -> str:
    """Return what a field means, and its bounds, for a person."""
    text = bounds(info.metadata)
    return " ".join([*(info.description or "").split(), f"{text[0].upper()}{text[1:]}." if text else ""]).strip()


def bounds(metadata: Sequence[Any]) -> str:
    """Write the bounds of a field for a person: `at least 1, at most 64`."""
    pairs = ((word, getattr(bound, name, None)) for bound in metadata for name, word in _BOUNDS.items())
    return ", ".join(f"{word} {_written(value)}" for word, value in pairs if value is not None)


def expected(info: FieldInfo) -> str:
    """Write what a field takes: its kind, its bounds, and what it means, which names the unit."""
    text = ", ".join(filter(None, (_kind(info.annotation), bounds(info.metadata))))
    meaning = " ".join((info.description or "").split()).rstrip(".")
    return f"{text} ({meaning})" if meaning else text


def schema_of(model: type[Params], title: str) -> dict[str, Any]:
    """Return the JSON Schema of a file with these fields, for editors.

    Nothing is required but in the items of lists: a file may name another as its base, whose lists it replaces as a whole.
    """
    schema = model.model_json_schema()
    found = list(_references(schema))
    items = {name for name, is_item in found if is_item} - {name for name, is_item in found if not is_item}
    needed = {name: each["required"] for name, each in schema.get("$defs", {}).items() if "required" in each}
    schema = _with_list_form(_for_toml(schema), model)
    for name in sorted(needed.keys() & items):
        schema["$defs"][name]["required"] = needed[name]
    base = {
        "type": "string",
        "minLength": 1,
        "description": "Recipe that this one begins with: a name, or a file relative to this one.",
    }
    properties = {"base": base, **schema["properties"]}
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, **schema, "title": title, "properties": properties}


def _references(schema: Any, is_item: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the definitions that a schema refers to, each with whether it stands there for an item of a list."""
    if isinstance(schema, dict) and "$ref" in schema:
        yield schema["$ref"].rpartition("/")[2], is_item
    inner = schema.items() if isinstance(schema, dict) else enumerate(schema) if isinstance(schema, list) else ()
    for name, each in inner:
        yield from _references(each, is_item or name == "items")


def _for_toml(schema: Any) -> Any:
    """Return a schema without what no file must hold, and with the word for None in the place of null."""
    if isinstance(schema, list):
        return [_for_toml(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema == {"type": "null"}:
        return {"const": NO_VALUE}
    is_model = "properties" in schema
    kept = {name: value for name, value in schema.items() if not (is_model and name == "required")}
    return {name: value if name == "default" else _for_toml(value) for name, value in kept.items()}


def _with_list_form(schema: dict[str, Any], model: type[Params]) -> dict[str, Any]:
    """Return a schema in which each field that takes a list in place of its table (`list_field`) takes that too."""
    properties = dict(schema["properties"])
    for name, info in model.model_fields.items():
        if field := list_field(info.annotation):
            described = {key: value for key, value in properties[name].items() if key in ("description", "default")}
            table = {key: value for key, value in properties[name].items() if key not in described}
            names = schema["$defs"][table["$ref"].rpartition("/")[2]]["properties"][field]
            listed = {key: value for key, value in names.items() if key not in ("default", "title")}
            properties[name] = {**described, "anyOf": [table, listed]}
    return {**schema, "properties": properties}


def _written(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else (f"`{value}`" if isinstance(value, str) else str(value))


def _kind(annotation: Any) -> str:
    if may_be_absent(annotation):
        others = [each for each in get_args(annotation) if each is not NoneType]
        return f"{' or '.join(map(_kind, others))}, or {NO_VALUE}"
    origin = get_origin(annotation)
    if origin is Literal:
        return f"one of {', '.join(map(str, get_args(annotation)))}"
    if origin in (tuple, list):
        return "a list"
    if entry_of(annotation) or inner_params(annotation):
        return "a table"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return f"one of {', '.join(str(member.value) for member in annotation)}"
    return _KINDS.get(annotation, "a text")
