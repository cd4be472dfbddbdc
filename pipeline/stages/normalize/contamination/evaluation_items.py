"""Evaluation items: prompts and solutions, those that are shipped and those in a given folder.

One JSON object per line in `*.jsonl`: `id`, `prompt`, `solution`, and `language` if the solution is not in the default one. The
digest of their content enters identities, the folder's path does not.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from pipeline.core.errors import ParamsError
from pipeline.core.params import canonical_json
from pipeline.lexing.languages import DEFAULT_LANGUAGE, LANGUAGES

SHIPPED = "cpp_small.jsonl"
EVALUATION_ITEMS = "evaluation items"
"""Name of the folder of evaluation items among the places of a part."""

_FIELDS = ("id", "prompt", "solution")


@dataclass(frozen=True, slots=True)
class EvaluationItem:
    """A task for a model, and the solution that must not be in its training data."""

    id: str
    prompt: str
    solution: str
    language: str = DEFAULT_LANGUAGE.name
    """Name in LANGUAGES of the language whose lexer reads the solution."""


def shipped_items() -> tuple[EvaluationItem, ...]:
    """Return the small C++ set that the project ships, sorted by id."""
    return _sorted(
        _parse_items(files("pipeline.stages.normalize.contamination").joinpath(SHIPPED).read_text("utf-8"), SHIPPED)
    )


def items_in(folder: Path) -> tuple[EvaluationItem, ...]:
    """Read the items of all `*.jsonl` files of a folder, sorted by id. Raises ParamsError naming file and line."""
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise ParamsError(
            f"evaluation items in {folder}",
            "there is no *.jsonl file",
            "a folder of JSONL files",
            "Correct the folder.",
        )
    return _sorted([item for path in paths for item in _parse_items(_read_utf8(path), path.name)])


@lru_cache(maxsize=8)
def items_digest(items: tuple[EvaluationItem, ...]) -> str:
    """Return the SHA-256 over the items, in hex, each without a default language. It does not depend on their files."""
    default = ("language", DEFAULT_LANGUAGE.name)
    rows = [{name: value for name, value in asdict(item).items() if (name, value) != default} for item in items]
    return hashlib.sha256(canonical_json(rows)).hexdigest()


def digest_of_items(folder: str | None) -> str:
    """Return the digest of the shipped items and those of a folder, if one is given."""
    return items_digest(all_items(Path(folder))) if folder else _digest_of_shipped_items()


@cache
def _digest_of_shipped_items() -> str:
    return items_digest(all_items(None))


@lru_cache(maxsize=8)
def load_items(sha256: str, folder: Path | None) -> tuple[EvaluationItem, ...]:
    """Return the shipped items and those of `folder`. Raises ParamsError if the digest differs."""
    items = all_items(folder)
    found = items_digest(items)
    if found != sha256:
        raise ParamsError(
            "evaluation items", f"digest {found}", sha256, "They changed during the build: start the build again."
        )
    return items


def all_items(folder: Path | None) -> tuple[EvaluationItem, ...]:
    """Return the shipped items and those of `folder`, sorted. Raises ParamsError for an id that occurs twice."""
    return _sorted([*shipped_items(), *(items_in(folder) if folder else ())])


def _sorted(items: list[EvaluationItem]) -> tuple[EvaluationItem, ...]:
    ordered = tuple(sorted(items, key=lambda item: item.id))
    ids = [item.id for item in ordered]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise ParamsError("evaluation items", f"{', '.join(twice)} occurs twice", "one item per id", "Rename one.")
    return ordered


def _read_utf8(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ParamsError(f"evaluation items {path.name}", str(error), "UTF-8 text", "Correct the file.") from error


def _parse_items(text: str, name: str) -> list[EvaluationItem]:
    items = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
            texts = {field: _text(values[field]) for field in _FIELDS}
            items.append(EvaluationItem(**texts, language=_language(values)))
        except (ValueError, KeyError, TypeError) as error:
            raise ParamsError(
                f"evaluation items {name}:{number}",
                f"{type(error).__name__}: {error}",
                f"an object with id, prompt and solution, each a string, and at most a language of {', '.join(LANGUAGES.names)}",
                "Correct the line.",
            ) from error
    return items


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"{value!r} is not a text")
    return value


def _language(values: dict[str, str]) -> str:
    name = values.get("language", DEFAULT_LANGUAGE.name)
    if name not in LANGUAGES:
        raise ValueError(f"the language {name!r} is not registered")
    return name
