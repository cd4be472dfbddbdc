"""A drop for an item that is not held, or for a secret where nothing was replaced, is seen; others are not."""

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.canaries.sound_sources import sound_code
from pipeline.build.oracles.drops.late_drops import ITEMS_FOLDER, unfounded_drops
from pipeline.contracts.withheld_paths import withheld_path
from pipeline.stages.normalize.contamination.evaluation_items import shipped_items

ITEM = shipped_items()[0]
PLAIN = sound_code("first", 600)
IN_PATH = "its path holds a secret or an e-mail address, and a path is never changed: <redacted-secret-1>.cpp"
LEFT = "secrets or addresses were still found after 3 rounds"
REPLACED = "it holds a line of which something is replaced where the whole file is read"
OTHER = "0" * 64
NAMED, WORDED, PLAINLY = "a/q7Zk2Lm9Xw4Rt1.cpp", "a/password.cpp", "a/measurements_of_first.cpp"


def is_seen(
    text: bytes,
    places: dict[str, Path] | None = None,
    called: str | None = None,
    is_read: bool = True,
    **drop: Any,
) -> bool:
    limits = {"min_overlap": 0.5, "min_jaccard": 0.7}
    row = {"source": "one", "path": "a.cpp", "text_sha256": OTHER, **drop}
    called = called or row["path"]
    dropped = pa.Table.from_pylist([row | {"path": called}, row | {"path": "b.cpp", "reason": "too_small"}])
    files = pa.table({"path": [row["path"]], "content": pa.array([text], pa.large_binary())})
    stored, collected = (SimpleNamespace(table=lambda name, columns, t=t: t.select(columns)) for t in (dropped, files))
    found = list(unfounded_drops(stored, collected, places or {}, limits, lambda path: is_read))  # type: ignore[arg-type]  # tables alone

    assert set(found) <= {("one", called)}, "the path itself is not told"
    return found != []


def item(overlap: float, where: str = "code", jaccard: float = 0.2, name: str = ITEM.id) -> str:
    return f"item {name}: {overlap:.3f} of its solution in {where}, Jaccard {jaccard:.3f}"


@pytest.mark.parametrize(
    ("text", "detail", "seen"),
    [
        (ITEM.solution + PLAIN, item(1.0, jaccard=0.1), False),
        ("".join(f"// {line}\n" for line in ITEM.solution.split("\n")), item(1.0, "comments", 0.9), False),
        (PLAIN, item(1.0), True),
        (PLAIN, item(1.0, jaccard=0.0), True),
        (PLAIN, item(0.0, jaccard=0.0), True),
        (ITEM.solution + sound_code("second", 9_000), item(1.0, jaccard=0.9), True),
        (ITEM.solution + PLAIN, item(0.4, jaccard=0.1), True),
        (ITEM.solution, item(1.0, "comments"), True),
        (ITEM.solution, item(1.0, name="of no set"), True),
        (ITEM.solution, "x", True),
        (PLAIN + "\u00e9", item(1.0), False),
        (ITEM.solution + PLAIN, item(1.0, jaccard=0.1, name="<redacted-secret-1> of one"), False),
        (PLAIN, item(1.0, name="<redacted-secret-1> of one"), True),
    ],
)
def test_a_file_holds_the_item_that_it_is_dropped_for(text: str, detail: str, seen: bool) -> None:
    assert is_seen(text.encode(), reason="contaminated", detail=detail) == seen


def test_an_item_in_a_language_of_another_lexer_is_not_judged() -> None:
    drop = {"reason": "contaminated", "detail": item(1.0)}

    assert is_seen(PLAIN.encode(), **drop)
    assert not is_seen(PLAIN.encode(), is_read=False, **drop)


def test_an_item_may_be_one_that_the_build_was_given(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text(json.dumps({"id": "own", "prompt": "", "solution": PLAIN}) + "\n\n")
    drop = {"reason": "contaminated", "detail": item(1.0, jaccard=1.0, name="own")}

    assert is_seen(PLAIN.encode(), **drop)
    assert not is_seen(PLAIN.encode(), {ITEMS_FOLDER: tmp_path}, **drop)


@pytest.mark.parametrize(
    ("detail", "change", "seen"),
    [
        (LEFT, {}, False),
        (LEFT, {"text_sha256": None}, True),
        (LEFT, {"text_sha256": hashlib.sha256(b"int a;\n").hexdigest()}, True),
        (LEFT, {"text_sha256": hashlib.sha256(b"int a;\r\n").hexdigest()}, True),
        (IN_PATH, {"text_sha256": None, "called": withheld_path("a.cpp")}, True),
        (IN_PATH, {"text_sha256": None, "path": NAMED, "called": withheld_path(NAMED)}, False),
        (IN_PATH, {"text_sha256": None, "path": WORDED, "called": withheld_path(WORDED)}, False),
        (IN_PATH, {"text_sha256": None, "path": PLAINLY, "called": withheld_path(PLAINLY)}, True),
        (IN_PATH, {"path": NAMED, "called": withheld_path(NAMED)}, True),
        (IN_PATH, {"text_sha256": None, "path": NAMED}, True),
        (LEFT, {"path": NAMED, "called": withheld_path(NAMED)}, True),
        (REPLACED, {}, True),
        (REPLACED, {"path": f"{'0' * 40}:a.cpp"}, False),
        ("x", {}, True),
    ],
)
def test_a_secret_is_left_where_something_was_replaced_or_in_a_path(detail: str, change: Any, seen: bool) -> None:
    assert is_seen(b"int a;\r\n", reason="unscrubbable", detail=detail, **change) == seen
