"""Solutions of evaluation items: found in code and in comments, in any layout, and reported by item."""

import json
import re
from pathlib import Path

import pytest

from pipeline.build.canaries.file_canaries import send_files
from pipeline.build.recipes import CorpusParams
from pipeline.core.errors import ParamsError
from pipeline.core.params import fingerprint
from pipeline.stages.normalize.contamination.decontaminate import WholeSolutions
from pipeline.stages.normalize.contamination.evaluation_items import shipped_items
from pipeline.stages.normalize.params import DecontaminationParams, NormalizeParams
from tests.pipeline.stages.normalize.conftest import Normalize
from tests.pipeline.stages.normalize.test_clean_source import code

ITEM = next(item for item in shipped_items() if item.id == "cpp_small/sliding_maximum")
LINES = ITEM.solution.splitlines(keepends=True)
HALF = "".join(LINES[:3])
REST = code("rest", 40)


def runs(text: str, length: int = 13) -> set[tuple[str, ...]]:
    """An oracle: runs of words and single characters, without the lexer under test. Good enough where no operator is split."""
    found = re.findall(r"\w+|\+\+|<=|>=|&&|::|[^\w\s]", text)
    return {tuple(found[start : start + length]) for start in range(len(found) - length + 1)}


CONTAMINATED = {
    "the solution alone": (ITEM.solution, 1.0, "code"),
    "among other code": (REST + ITEM.solution + code("more"), 1.0, "code"),
    "in another layout": (REST + " ".join(ITEM.solution.split()), 1.0, "code"),
    "with comments in it": (REST + ITEM.solution.replace("{\n", "{  // why\n"), 1.0, "code"),
    "in a block comment": (REST + "/*\n" + "".join(f" * {line}" for line in LINES) + " */\n", 1.0, "comments"),
    "in line comments": (REST + "".join(f"// {line}" for line in LINES), 1.0, "comments"),
    "all but its last lines": (REST + "".join(LINES[:-4]), None, "code"),
}


@pytest.mark.parametrize(("text", "overlap", "where"), CONTAMINATED.values(), ids=CONTAMINATED)
def test_a_solution_is_found(text: str, overlap: float | None, where: str, normalize: Normalize) -> None:
    made = normalize({"a": {"x.cpp": text, "y.cpp": code("y")}})
    assert made.outcomes() == {"a/x.cpp": "contaminated", "a/y.cpp": "kept"}
    (row,) = made.rows("a", "contamination.parquet")
    wanted = runs(ITEM.solution)
    assert row["overlap"] == pytest.approx(overlap or len(runs(text) & wanted) / len(wanted))
    assert (row["item_id"], row["where"], row["path"]) == (ITEM.id, where, "x.cpp")
    (dropped,) = made.rows("a", "dropped.parquet")
    assert dropped["record_id"] == row["record_id"]
    assert f"item {ITEM.id}: {row['overlap']:.3f} of its solution in {where}" in dropped["detail"]
    assert made.result.report.measures["num_contaminated"] == 1


@pytest.mark.parametrize(
    "text",
    [
        REST,
        REST + HALF,
        REST + f"// {ITEM.prompt}\n",
        REST + ITEM.solution.replace("falling", "queue").replace("place", "i"),
    ],
    ids=["other code", "a part below the limit", "its prompt", "the same idea in other names"],
)
def test_other_code_is_kept(text: str, normalize: Normalize) -> None:
    made = normalize({"a": {"x.cpp": text}})
    assert made.outcomes() == {"a/x.cpp": "kept"}
    assert made.result.report.measures["num_contaminated_left"] == 0


def test_the_limit_is_that_of_the_params(normalize: Normalize) -> None:
    strict = NormalizeParams(decontamination=DecontaminationParams(min_overlap=0.1))
    assert normalize({"a": {"x.cpp": REST + HALF}}, strict).outcomes() == {"a/x.cpp": "contaminated"}


def test_a_document_that_resembles_a_solution_is_found_by_its_signature(normalize: Normalize) -> None:
    """Each third statement is another: no run of 13 tokens is left of many, but the five-token shingles are."""
    item = next(item for item in shipped_items() if item.id == "cpp_small/spiral_order")
    changed = item.solution.replace("walked", "cells")
    strict = DecontaminationParams(min_overlap=1.0, min_jaccard=0.3)
    made = normalize({"a": {"x.cpp": changed}}, NormalizeParams(decontamination=strict))
    (row,) = made.rows("a", "contamination.parquet")
    assert (row["item_id"], row["overlap"] < 1, row["jaccard"] >= 0.3) == (item.id, True, True)


def test_items_of_a_folder_count_by_their_content_and_not_by_their_place(normalize: Normalize, tmp_path: Path) -> None:
    line = json.dumps({"id": "theirs/1", "prompt": "p", "solution": code("theirs")})
    found = []
    for name, content in {"one": line, "two": line, "other": line.replace("theirs/1", "theirs/2")}.items():
        folder = tmp_path / "items" / name
        folder.mkdir(parents=True)
        (folder / f"{name}.jsonl").write_text(content + "\n")
        params = NormalizeParams(decontamination=DecontaminationParams(items_folder=str(folder)))
        made = normalize({"a": {"x.cpp": code("theirs"), "y.cpp": code("y")}}, params)
        assert made.outcomes()["a/x.cpp"] == "contaminated"
        assert fingerprint(params) == fingerprint(NormalizeParams())
        found.append(made.result.object_id)
    assert found[0] == found[1] != found[2]
    assert normalize({"a": {"x.cpp": code("theirs"), "y.cpp": code("y")}}).outcomes()["a/x.cpp"] == "kept"


def test_a_solution_that_is_too_short_is_refused(tmp_path: Path, normalize: Normalize) -> None:
    (tmp_path / "short.jsonl").write_text('{"id": "short", "prompt": "p", "solution": "int a;"}\n')
    params = NormalizeParams(decontamination=DecontaminationParams(items_folder=str(tmp_path)))
    with pytest.raises(ParamsError, match="its solution has 3 tokens"):
        normalize({"a": {"x.cpp": code("x")}}, params)


def test_the_gate_sees_what_a_blind_rule_lets_through() -> None:
    gate = WholeSolutions(shipped_items())
    assert all(gate.holds(code("x") + "\n// ".join(item.solution.split("\n"))) for item in shipped_items())
    assert not gate.holds(REST + HALF)


def test_the_shipped_items_are_forty_and_differ() -> None:
    items = shipped_items()
    assert len(items) == len({item.id for item in items}) == 40
    for item in items:
        others = set().union(*(runs(other.solution) for other in items if other is not item))
        wanted = runs(item.solution)
        assert len(wanted & others) / len(wanted) < 0.1, item.id


def test_the_canaries_of_twins_and_items_are_caught(tmp_path: Path) -> None:
    caught = send_files(tmp_path / "canaries", CorpusParams())
    names = {"canary-evaluation/in_a_comment.cpp", "canary-evaluation/in_code.cpp", "canary-twins/relabeled.cpp"}
    assert [name for name in sorted(names) if not caught.get(name)] == []
