"""Evaluation items: read from files, with a digest of their content, and refused by file and line."""

import json
from pathlib import Path

import pytest

from pipeline.core.errors import ParamsError
from pipeline.stages.normalize.contamination.evaluation_items import (
    all_items,
    items_digest,
    items_in,
    load_items,
    shipped_items,
)

ITEM = shipped_items()[0]
BAD_ITEMS = {
    "no JSON": ("{", "items.jsonl:2"),
    "no object": ("[1]", "items.jsonl:2"),
    "no solution": ('{"id": "b", "prompt": "p"}', "solution"),
    "no text": ('{"id": "b", "prompt": "p", "solution": 3}', "3 is not a text"),
    "an unknown language": ('{"id": "b", "prompt": "p", "solution": "s", "language": "b"}', "'b' is not registered"),
    "an id twice": ('{"id": "a", "prompt": "p", "solution": "s"}', "a occurs twice"),
    "an id of the shipped ones": (json.dumps({"id": ITEM.id, "prompt": "p", "solution": "s"}), "occurs twice"),
}


@pytest.mark.parametrize(("line", "message"), BAD_ITEMS.values(), ids=BAD_ITEMS)
def test_a_bad_item_is_refused_with_its_place(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text(f'{{"id": "a", "prompt": "p", "solution": "s"}}\n{line}\n')
    with pytest.raises(ParamsError) as refused:
        all_items(tmp_path)
    assert message in str(refused.value)


def test_a_folder_without_items_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match="jsonl file"):
        items_in(tmp_path)


def test_items_that_changed_since_their_digest_was_taken_are_refused() -> None:
    assert load_items(items_digest(shipped_items()), None) == shipped_items()
    with pytest.raises(ParamsError, match="changed during the build"):
        load_items("0" * 64, None)
