"""Params: closed, bounded, frozen parameter models, and the fingerprint of their values."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_jsonable_python

from pipeline.core.errors import ParamsError


class Params(BaseModel):
    """Base of every parameter model: unknown fields, loose types and infinities are rejected, values never change."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


def field_of(params: Params, name: str, subject: str) -> Any:
    """Return the field of that name, which a declaration names. Raises ParamsError naming the fields that exist."""
    fields = type(params).model_fields
    if name not in fields:
        raise ParamsError(subject, f"{type(params).__name__} has no field {name}", f"one of {', '.join(fields)}")
    return getattr(params, name)


def parse_json(content: bytes) -> Any:
    """Return what JSON of unknown origin holds. Raises ValueError, also for brackets that are nested too deep."""
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def canonical_json(value: object) -> bytes:
    """Serialize a value for hashing: UTF-8, keys sorted, no spaces, shortest floats (RFC 8785 for our values).

    Raises ParamsError for a value without a stable identity, such as a function or a NaN.
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ParamsError(
            "fingerprint", str(error), "JSON values only", "Give the value a stable JSON form."
        ) from error
    return text.encode()


def digest(value: object) -> str:
    """Return the SHA-256 of the canonical JSON, in hex."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def fingerprint(params: Params) -> str:
    """Return the identity of a parameter model: every field counts, defaults included."""

    def refuse(value: Any) -> Any:
        raise ParamsError(type(params).__name__, f"{value!r} has no stable identity", "JSON values only")

    return digest(to_jsonable_python(params.model_dump(mode="json"), fallback=refuse))


def changed_values(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the flat fields whose values differ, in the order of their names, each with its value before and now."""
    old, new = flat(before), flat(now)
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return {name: [old.get(name), new.get(name)] for name in names}


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Flatten nested mappings into one by dotted names; a list stays a value."""
    if not isinstance(value, Mapping):
        return {prefix: value}
    named: dict[str, Any] = {}
    for key, inner in value.items():
        named.update(flat(inner, f"{prefix}.{key}" if prefix else str(key)))
    return named
