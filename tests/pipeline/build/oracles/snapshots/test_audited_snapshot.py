"""Each field of snapshot.json is computed again at a promotion, also by the process that wrote it."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.build.oracles.snapshots.audited_snapshot import ComposedOf, Misstated, differences, expected_content
from pipeline.build.promotion import promote
from pipeline.build.run_stage import StageResult
from pipeline.contracts.part import VOCABULARY_PART
from pipeline.core.errors import SnapshotError
from pipeline.core.params import canonical_json
from pipeline.formats.snapshot_json import SNAPSHOT_FILE
from pipeline.pins.held_out import HeldOut
from pipeline.store.fsck import fsck
from pipeline.store.objects import REPORT, StoredObject
from pipeline.store.store import Store
from tests.support.made.made_to_fit import edit_json, fit

Place = tuple[str | int, ...]
MADE_AT = 3
"""Index of the source with several licenses."""
ALIKE = ("sources", "specials", "licenses", "pins")
"""Fields with entries of one form: the last of each is altered."""


def leaves(value: Any, place: Place = ()) -> Iterator[Place]:
    """The places of all values of snapshot.json that are no lists and no tables, and of one of those that are alike."""
    if isinstance(value, dict | list) and value:
        inner = list(value.items() if isinstance(value, dict) else enumerate(value))
        for name, each in inner[-1:] if place and place[-1] in ALIKE else inner:
            yield from leaves(each, (*place, name))
    else:
        yield place


def changed(value: Any, place: Place) -> Any:
    """A copy of a value with another leaf at a place."""
    if not place:
        return (
            value + 7 if type(value) in (int, float) else {str: f"{value}x", bool: not value, list: ["x"]}[type(value)]
        )
    inner = changed(value[place[0]], place[1:])
    if isinstance(value, dict):
        return {**value, place[0]: inner}
    return [*value[: place[0]], inner, *value[place[0] + 1 :]]


@pytest.fixture
def copied(tiny_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store that the promoting process has made all of: nothing is made again."""
    shutil.copytree(tiny_store.root, tmp_path / "store")
    for module in ("replay", "collected.collected_sources"):
        monkeypatch.setattr(f"pipeline.build.{module}.was_made_here", lambda object_id: True)
    return Store(tmp_path / "store")


def snapshot_of(store: Store) -> StoredObject:
    return store.read(store.ref("tiny", "candidate") or "")


def refused(store: Store, file: str, change: Callable[[Any], Any]) -> str:
    """The sentence by which a promotion refuses a snapshot with another file, though every digest fits."""
    said = refused_by_promotion(store, file, change)
    assert fsck(store) == []
    return said


def refused_by_promotion(store: Store, file: str, change: Callable[[Any], Any]) -> str:
    before = store.ref("tiny", "live")
    forged = fit(store, "tiny", {snapshot_of(store).object_id: {file: edit_json(change)}})
    with pytest.raises(SnapshotError) as error:
        promote(store, "tiny", forged)
    assert store.ref("tiny", "live") == before
    return str(error.value)


def test_every_field_that_its_own_process_forged_is_refused(copied: Store, tiny_results: list[StageResult]) -> None:
    content = snapshot_of(copied).json(SNAPSHOT_FILE)
    found = list(leaves(content))

    assert len(found) > 20
    for place in found:
        said = refused_by_promotion(copied, SNAPSHOT_FILE, lambda value, place=place: changed(value, place))
        assert f"{place[-1]}" in said or place[-1] == 0, said
        fit(
            copied,
            "tiny",
            {snapshot_of(copied).object_id: {SNAPSHOT_FILE: lambda path: path.write_bytes(canonical_json(content))}},
        )
    assert fsck(copied) == [], "of all that were forged"


def test_a_refusal_names_what_was_found_and_expected(copied: Store, tiny_results: list[StageResult]) -> None:
    place = ("sources", MADE_AT, "num_tokens")
    before = snapshot_of(copied).json(SNAPSHOT_FILE)["sources"][MADE_AT]

    said = refused(copied, SNAPSHOT_FILE, lambda value: changed(value, place))

    assert f"its {SNAPSHOT_FILE} has {before['num_tokens'] + 7} as sources.{before['name']}.num_tokens" in said
    assert f"expected {before['num_tokens']}" in said
    assert "Build again and promote that" in said


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content | {"more": 1},
        lambda content: {name: value for name, value in content.items() if name != "row_length"},
        lambda content: content | {"sources": content["sources"][1:]},
        lambda content: content | {"sources": content["sources"][::-1]},
        lambda content: content | {"sources": [*content["sources"], content["sources"][0]]},
        lambda content: content | {"sources": None},
        lambda content: [],
    ],
    ids=["a field more", "a field less", "a source less", "another order", "a source twice", "no list", "no object"],
)
def test_a_snapshot_of_another_form_is_refused(
    copied: Store, tiny_results: list[StageResult], change: Callable[[Any], Any]
) -> None:
    refused(copied, SNAPSHOT_FILE, change)


@pytest.mark.parametrize(
    "forged", [{"rows_in": 3}, {"rows_out": 3}, {"dropped": {"more": 1}}, {"measures": {"num_sources": 99}}]
)
def test_a_forged_number_in_the_report_of_a_snapshot_is_refused(
    copied: Store, tiny_results: list[StageResult], forged: dict[str, Any]
) -> None:
    refused(copied, REPORT, lambda report: report | forged)


@pytest.mark.parametrize("field", ["vocabulary", "row_length", "pins", "held_out", "weights"])
def test_a_field_of_the_identity_that_was_forged_is_refused(
    copied: Store, tiny_results: list[StageResult], field: str
) -> None:
    snapshot = snapshot_of(copied)
    value = snapshot.manifest.identity[field]
    forged = fit(copied, "tiny", {}, {snapshot.object_id: {field: changed(value, next(leaves(value)))}})

    with pytest.raises(SnapshotError, match=f"as identity.{field}"):
        promote(copied, "tiny", forged)


def test_a_sound_snapshot_is_promoted(copied: Store, tiny_results: list[StageResult]) -> None:
    assert promote(copied, "tiny").unchanged


@pytest.mark.parametrize(
    ("found", "expected", "misstated"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": {"b": 1}}, [Misstated("a", "1", '{"b": 1}')]),
        ({"a": {"b": 1}}, {"a": 1}, [Misstated("a", '{"b": 1}', "1")]),
        ([], {"a": 1}, [Misstated(SNAPSHOT_FILE, "[]", '{"a": 1}')]),
        ({"a": {"b": 1}}, {"a": {"b": 2, "c": 3}}, [Misstated("a.b", "1", "2"), Misstated("a.c", "nothing", "3")]),
    ],
)
def test_values_are_compared_field_by_field_whatever_they_are(
    found: Any, expected: Any, misstated: list[Misstated]
) -> None:
    assert list(differences(found, expected, "")) == misstated


@pytest.mark.parametrize(
    ("rule", "is_stated"),
    [
        (HeldOut(sources=("of no pin",)), False),
        (HeldOut(globs=("*/tests/*",)), True),
        (HeldOut(hash_fraction=0.25), True),
    ],
)
def test_a_held_out_source_that_has_no_rows_is_not_expected_and_a_rule_on_files_is(
    tmp_path: Path, rule: HeldOut, is_stated: bool
) -> None:
    (tmp_path / "tokenizer.json").write_text('{"model": {"vocab": {}}}')
    (tmp_path / "vocabulary.toml").write_text("specials = []")
    vocabulary: Any = SimpleNamespace(file=lambda name: tmp_path / name)
    request: dict[str, Any] = {"pins": {}, "held_out": rule.model_dump(mode="json"), "weights": {}}
    of = ComposedOf({}, {}, {VOCABULARY_PART: vocabulary}, {"row_length": 8, "vocabulary": "cpp"}, request)

    expected = expected_content(of)

    assert expected["held_out"] == []
    assert expected.get("held_out_rule", "nothing") == (rule.model_dump(mode="json") if is_stated else "nothing")
