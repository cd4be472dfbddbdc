"""Oracle of a snapshot: each field of it, computed again from the tables and requests that are stored.

It shares no code with what composes a snapshot. What the store does not hold is in `docs/architecture.md`.
"""

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.build.oracles.snapshots.held_out_documents import held_out_sources
from pipeline.contracts.part import DUPLICATES_PART, VOCABULARY_PART, Tables
from pipeline.core.records import Split
from pipeline.core.table_names import DOCUMENTS, TOKENS, TRAINING_ROWS
from pipeline.formats.snapshot_json import SNAPSHOT_FILE, SNAPSHOT_FORMAT

_NOTHING = object()
"""The value of a field that is not there."""
_VOCABULARY_FILES = ("tokenizer.json", "vocabulary.toml")
_MAX_SHOWN = 100


@dataclass(frozen=True)
class ComposedOf:
    """Parts that a snapshot was composed of, by name, the Params of its rows, and the request of its build."""

    collected: Mapping[str, Tables]
    rules: Mapping[str, Tables]
    """The cleaned sources, and the part that compared them."""
    rows: Mapping[str, Tables]
    """The rows of each source, and the part of the vocabulary."""
    params: Mapping[str, Any]
    request: Mapping[str, Any]

    @property
    def sources(self) -> list[str]:
        """The names of the sources with rows, sorted."""
        return sorted(self.rows.keys() - {VOCABULARY_PART})


@dataclass(frozen=True)
class Misstated:
    """A field of a snapshot that is not what the stored data gives, as JSON that is cut."""

    place: str
    found: str
    expected: str


def misstated_fields(snapshot: Tables, inputs: Mapping[str, str], of: ComposedOf) -> Iterator[Misstated]:
    """Yield the fields of a snapshot's files, identity and inputs that are not what it was composed of."""
    expected = expected_content(of)
    yield from differences(snapshot.json(SNAPSHOT_FILE), expected, "")
    weights = {source["name"]: source["weight"] for source in expected["sources"]}
    copied = ("vocabulary", "row_length", "pins", "held_out", "held_out_rule")
    named = {name: expected[name] for name in copied if name in expected} | {"weights": weights}
    yield from differences({name: snapshot.identity.get(name) for name in named}, named, "identity")
    yield from differences(dict(inputs), _expected_inputs(of), "inputs")
    for name in _VOCABULARY_FILES:
        found, stored = (each.file(name).read_bytes() for each in (snapshot, of.rows[VOCABULARY_PART]))
        yield from differences(hashlib.sha256(found).hexdigest(), hashlib.sha256(stored).hexdigest(), name)
    number = sum(source["num_documents"] for source in expected["sources"])
    report = {"rows_in": number, "rows_out": number, "dropped": {}, "measures": {"num_sources": len(of.sources)}}
    stated = snapshot.json("report.json")
    yield from differences({name: stated.get(name) for name in report}, report, "report")


def differences(found: Any, expected: Any, place: str) -> Iterator[Misstated]:
    """Yield the places at which two values differ, tables by field. Sources in a list, which has its order, are tables by name."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in sorted(expected.keys() | found.keys()):
            inner = f"{place}.{name}" if place else name
            yield from differences(found.get(name, _NOTHING), expected.get(name, _NOTHING), inner)
    elif _names(expected) and _names(found) == _names(expected):
        for number, name in enumerate(_names(expected)):
            yield from differences(found[number], expected[number], f"{place}.{name}")
    elif _as_json(found) != _as_json(expected):
        yield Misstated(place or SNAPSHOT_FILE, _as_json(found)[:_MAX_SHOWN], _as_json(expected)[:_MAX_SHOWN])


def expected_content(of: ComposedOf) -> dict[str, Any]:
    """Return what snapshot.json should hold."""
    pins = {name: _collected_as(of.collected.get(name), pin) for name, pin in of.request["pins"].items()}
    return {
        "format_version": SNAPSHOT_FORMAT,
        "sources": [_source(of, name) for name in of.sources],
        "vocabulary": _vocabulary(of),
        "row_length": of.params["row_length"],
        "pins": pins,
        **_held_out(of.request["held_out"], of.sources),
    }


def _held_out(rule: Mapping[str, Any], sources: Sequence[str]) -> dict[str, Any]:
    found = {"held_out": sorted(held_out_sources(rule, sources))}
    is_more = rule["globs"] or rule["hash_fraction"] is not None
    return {**found, "held_out_rule": dict(rule)} if is_more else found


def _source(of: ComposedOf, name: str) -> dict[str, Any]:
    rows, columns = of.rows[name], ["document_id", "license", "num_bytes"]
    tokens = rows.table(TOKENS, ["document_id", "input_ids"])
    ids = set(tokens["document_id"].to_pylist())
    documents = [row for row in of.rules[name].table(DOCUMENTS, columns).to_pylist() if row["document_id"] in ids]
    numbers = {f"num_rows_{split}": rows.table(TRAINING_ROWS[split], ["lengths"]).num_rows for split in Split}
    return {
        "name": name,
        "rows": rows.object_id,
        "weight": of.request["weights"][name],
        "num_documents": len(documents),
        "num_tokens": sum(len(chunk.flatten()) for chunk in tokens["input_ids"].chunks),
        "num_text_bytes": sum(row["num_bytes"] for row in documents),
        "licenses": dict(Counter(row["license"] for row in documents)),
        **numbers,
    }


def _collected_as(stored: Tables | None, pin: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a pin as its source was collected by them."""
    return dict(pin) if stored is None else {name: stored.identity.get(name) for name in pin}


def _vocabulary(of: ComposedOf) -> dict[str, Any]:
    """Return what a vocabulary's own files say of it: each special token has the id that its spelling has among all entries."""
    tokenizer, settings = (of.rows[VOCABULARY_PART].file(name).read_bytes() for name in _VOCABULARY_FILES)
    entries = json.loads(tokenizer)["model"]["vocab"]
    return {
        "name": of.params["vocabulary"],
        "sha256": hashlib.sha256(tokenizer).hexdigest(),
        "size": len(entries),
        "specials": {spelling: entries.get(spelling) for spelling in tomllib.loads(settings.decode())["specials"]},
    }


def _expected_inputs(of: ComposedOf) -> dict[str, str]:
    found = {f"rows/{name}": of.rows[name].object_id for name in of.sources}
    found |= {f"rules/{name}": of.rules[name].object_id for name in of.sources}
    alone = {DUPLICATES_PART: of.rules[DUPLICATES_PART], VOCABULARY_PART: of.rows[VOCABULARY_PART]}
    return found | {name: stored.object_id for name, stored in alone.items()}


def _names(value: Any) -> list[Any]:
    """Return the names of tables in a list; none for another value."""
    is_of_tables = isinstance(value, list) and all(isinstance(each, dict) for each in value)
    return [each.get("name") for each in value] if is_of_tables else []


def _as_json(value: Any) -> str:
    return "nothing" if value is _NOTHING else json.dumps(value, sort_keys=True)
