"""Languages: one entry is enough for a language like C to be collected, counted, ordered, parsed and cut into chunks."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import CorpusParams
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.core.errors import ParamsError
from pipeline.core.records import ChunkKind
from pipeline.lexing.languages import (
    C_INCLUDES,
    C_NODES,
    LANGUAGES,
    C,
    Grammar,
    Language,
    grammar_distributions,
    is_source,
    is_unit,
    language_of,
    source_suffixes,
)
from pipeline.pins.local_tree import tree_digest
from pipeline.stages.collect.kinds.local import LocalPin
from pipeline.store.store import Store

TEXT = """/* MIT */
#include "own.h"

struct point { int x; int y; };

static int sum(struct point p, int scale)
{
    int total = p.x * scale;
    total += p.y * scale;
    return total;
}
"""
OTHER = """#include "own.h"

struct interval { long begin; long end; char label[16]; };

long length(const struct interval *one)
{
    if (one->end < one->begin)
        return -1;
    return one->end - one->begin;
}
"""
XYZ = Language(
    "xyz",
    frozenset({".xyz"}),
    Grammar(
        "tree-sitter-c",
        "tree_sitter_c:language",
        replace(C_NODES, single={**C_NODES.single, "struct_specifier": ChunkKind.TYPEDEF}, functions=frozenset()),
    ),
    includes=C_INCLUDES,
    unit_suffixes=frozenset({".xyz"}),
)


def build(root: Path, **pin_fields: object) -> tuple[Store, dict[str, StageResult]]:
    """Collect, normalize and enrich one file of the language, beside one of C and a header."""
    folder = root / "tree"
    folder.mkdir(parents=True)
    for name, text in (
        ("own.h", "int own(int number, char *names[]);\n" * 3),
        ("own.xyz", TEXT),
        ("a.c", OTHER),
    ):
        (folder / name).write_text(text)
    pin = LocalPin.model_validate(
        {"name": "tree", "path": folder, "digest": tree_digest(folder), "declared_license": "MIT", **pin_fields}
    )
    store = Store(root / "store")
    with open_build(BuildRequest("made", CorpusParams(), (pin,), "a test"), store) as opened:
        return store, {result.stage: result for result in run_stages(opened, "enrich")}


def test_a_registered_language_is_collected_counted_ordered_parsed_and_cut_by_its_entry(tmp_path: Path) -> None:
    with LANGUAGES.registered(XYZ):
        store, results = build(tmp_path, languages={"xyz": (0.1, 0.9)})
        assert ".xyz" in source_suffixes()
        assert is_unit("own.xyz")

    normalize = results["normalize"].report.measures
    assert normalize["num_bytes_cleaned_xyz"] == len(TEXT)
    rows = store.read(results["enrich"].parts["tree"]).table("enriched.parquet").to_pylist()
    assert [(row["path"], row["language"]) for row in rows] == [("own.h", "c"), ("own.xyz", "xyz"), ("a.c", "c")]
    kinds = {row["path"]: [list(ChunkKind)[code].value for code in row["chunk_kinds"]] for row in rows}
    assert kinds["a.c"] == ["preamble", "class_decl", "class_member", "class_decl", "func_sig", "func_body"]
    assert kinds["own.xyz"] == ["comment", "preamble", "typedef", "other"]


def test_a_file_of_a_language_that_is_not_registered_is_left_out(tmp_path: Path) -> None:
    store, results = build(tmp_path)

    rows = store.read(results["enrich"].parts["tree"]).table("enriched.parquet").to_pylist()
    assert [row["path"] for row in rows] == ["own.h", "a.c"]
    assert "num_bytes_cleaned_xyz" not in results["normalize"].report.measures


@pytest.mark.parametrize(
    ("path", "name"),
    [
        *(
            ("a.c", "c"),
            ("a.C", "cpp"),
            ("a.h", "c_or_cpp"),
            ("a.H", "c_or_cpp"),
            ("A.CPP", "cpp"),
            ("b.c/a.cuh", "cpp"),
        ),
        *(("a.txt", None), ("c", None), (".c", None), ("", None)),
    ],
)
def test_the_language_of_a_file_is_that_of_its_suffix(path: str, name: str | None) -> None:
    language = language_of(path)

    assert (language.name if language else None) == name
    assert is_source(path) == (name is not None)


def test_the_suffixes_and_distributions_are_those_of_all_entries() -> None:
    assert {*source_suffixes()} >= {".c", ".h", ".cc", ".cuh"}
    assert ".C" not in source_suffixes()
    assert grammar_distributions() == sorted({each.grammar.distribution for each in LANGUAGES if each.grammar})
    assert {*grammar_distributions()} >= {"tree-sitter-c", "tree-sitter-cpp"}
    assert [is_unit(path) for path in ("a.c", "a.C", "a.cu", "a.h", "a.hpp", "a.txt")] == [True] * 3 + [False] * 3
    assert C.grammar is not None


def test_a_language_without_a_grammar_is_refused() -> None:
    with pytest.raises(ParamsError, match="language made: it has no grammar"):
        Language("made", frozenset({".made"}))
