"""Evaluation items: a prompt and its solution, those that are shipped and those that are given in a folder.

One JSON object a line in `*.jsonl`: `id`, `prompt`, `solution`. The digest over their content is the identity; where
the folder lies is none.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from pipeline.core.errors import ParamsError
from pipeline.core.params import canonical_json

SHIPPED = "cpp_small.jsonl"
EVALUATION_ITEMS = "evaluation items"
"""The place of a folder of evaluation items, among the places of a part."""

_FIELDS = ("id", "prompt", "solution")


@dataclass(frozen=True, slots=True)
class EvaluationItem:
    """A task as a model is asked it, and the answer that it must not have seen."""

    id: str
    prompt: str
    solution: str


def shipped_items() -> tuple[EvaluationItem, ...]:
    """The small C++ set that the project ships, sorted by id."""
    return _sorted(_parse(files("pipeline.normalize.contamination").joinpath(SHIPPED).read_text("utf-8"), SHIPPED))


def items_in(folder: Path) -> tuple[EvaluationItem, ...]:
    """The items of all `*.jsonl` files of a folder, sorted by id. Raises ParamsError naming file and line."""
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise ParamsError(
            f"evaluation items in {folder}",
            "there is no *.jsonl file",
            "a folder of JSONL files",
            "Correct the folder.",
        )
    return _sorted([item for path in paths for item in _parse(_read(path), path.name)])


def items_digest(items: tuple[EvaluationItem, ...]) -> str:
    """SHA-256 over the items, in hex: equal items have equal digests, in whatever files they lie."""
    return hashlib.sha256(canonical_json([asdict(item) for item in items])).hexdigest()


@lru_cache(maxsize=8)
def load_items(sha256: str, folder: Path | None) -> tuple[EvaluationItem, ...]:
    """The shipped items and those of `folder`. Raises ParamsError if they are not those of the digest."""
    items = all_items(folder)
    found = items_digest(items)
    if found != sha256:
        raise ParamsError(
            "evaluation items", f"digest {found}", sha256, "Start the build again: they changed under it."
        )
    return items


def all_items(folder: Path | None) -> tuple[EvaluationItem, ...]:
    """The shipped items and those of `folder`, sorted. Raises ParamsError for an id that stands twice."""
    return _sorted([*shipped_items(), *(items_in(folder) if folder else ())])


def _sorted(items: list[EvaluationItem]) -> tuple[EvaluationItem, ...]:
    ordered = tuple(sorted(items, key=lambda item: item.id))
    ids = [item.id for item in ordered]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise ParamsError("evaluation items", f"{', '.join(twice)} stands twice", "one item an id", "Rename one.")
    return ordered


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ParamsError(f"evaluation items {path.name}", str(error), "UTF-8 text", "Correct the file.") from error


def _parse(text: str, name: str) -> list[EvaluationItem]:
    items = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
            items.append(EvaluationItem(*(_text(values[field]) for field in _FIELDS)))
        except (ValueError, KeyError, TypeError) as error:
            raise ParamsError(
                f"evaluation items {name}:{number}",
                f"{type(error).__name__}: {error}",
                "an object with id, prompt and solution, each a text",
                "Correct the line.",
            ) from error
    return items


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"{value!r} is no text")
    return value
