"""Structure that contradicts its text is found, and what the parser makes of ordinary code contradicts nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from pipeline.build.oracles import audited_structure
from pipeline.build.oracles.audited_structure import misstructured_documents
from pipeline.core.records import PROVENANCE_CODES, ChunkKind, EnrichedDocument, Provenance
from pipeline.core.schema import table_of_records
from pipeline.stages.enrich.document import parse_document, record_of
from pipeline.stages.enrich.params import SyntaxParams

TEXT = """\
// The first.
#include <vector>
#include "b.h"
namespace a {
class Price {
    int value;
public:
    int of(int number) { return (number + (value)); }
};
}  // namespace a
#if defined(A)
#define B {
#endif
"""
LANGUAGES = {".cpp": ["cpp"], ".C": ["cpp"], ".c": ["c"], ".h": ["c", "cpp"], ".py": ["cpp"]}
DEGRADED = PROVENANCE_CODES[Provenance.DEGRADED]
KINDS = list(ChunkKind)
TOO_MANY = {"provenance": "degraded", "provenance_detail": "max_error_fraction"}


def _row(text: str = TEXT, path: str = "a.cpp", order: int = 0) -> dict[str, Any]:
    names = {"source": "one", "path": path, "split": "train", "text": text, "text_sha256": "0", "document_id": path}
    document = names | {"filepath_stable_id": None, "file_local_commit_index": None}
    return asdict(record_of(parse_document(document, SyntaxParams()), order))


def _flawed(*rows: dict[str, Any], not_preprocessed: Sequence[str] = ()) -> list[str]:
    table = table_of_records(EnrichedDocument, [EnrichedDocument(**row) for row in rows])
    return [path for _, path in misstructured_documents(table, [".c", ".cpp", ".h"], 0.5, LANGUAGES, not_preprocessed)]


WITHOUT_A_BRANCH = """#ifdef OLD
list get(a) list *a;
#else
#ifdef B
#include "io.h"
#endif
list get(list *a)
#endif
{   list b;
    {   b=1;
#ifdef C
            if(c[i].d != E
             && !same(c[i].f,g)) {
                }
#endif
    }
        if(p->h)
}
"""
"""Code that parses without an error once branches are left out, among them the second signature, and the include before it."""


def test_a_signature_may_hold_the_branches_that_were_not_parsed() -> None:
    row = _row(WITHOUT_A_BRANCH, "a.c")
    (signature,) = (number for number, kind in enumerate(row["chunk_kinds"]) if KINDS[kind] is ChunkKind.FUNC_SIG)
    as_other = [*row["chunk_kinds"][:signature], KINDS.index(ChunkKind.OTHER), *row["chunk_kinds"][signature + 1 :]]

    assert '#include "io.h"' in row["text"][row["chunk_starts"][signature] : row["chunk_ends"][signature]]
    assert _flawed(row) == []
    assert _flawed(row | {"chunk_kinds": as_other}) == ["a.c"]


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "",
        "\n",
        "int a[] = {1, 2};\n",
        'extern "C" {\nint f(void) { return 1; }\n}\n',
        'extern  "C" {\nint f(void);\n}\n',
        'extern /* of C */ "C" {\n// f\n\nint f(void);\n}\n',
        "struct A { int operator()(int a) { return a; } };\n",
        "A::A() : a(1) { }\nA::A() try : a(1) { } catch (int) { }\nA::B() = default;\n",
        "#if A\nvoid f(int a) {\n#else\nvoid f() {\n#endif\n}\n",
        "#include <a.h>\n#if A\nvoid f() {}\n#else\nvoid g() {}\n#endif\n",
        "enum A {\n#include <a.def>\n};\n",
        "int f( {\n",
        '/* #include "c.h" */\nchar a[] = R"(\n#include "d.h"\n)";\n',
        "void f() {\n#include <b.h>\n}\n",
        "// \u00e9\nnamespace a { int f() { return 1; } }\n",
        "namespace a {\nvoid b();\n",
        "int a\n#if B\n= 1\n#endif\n;\n",
        "#if A\nint f(int a)\n#define B 1\n{\n#define C {\n}\n#endif\n",
        "struct A {\nclass B\n#if C\n: D\n#endif\n{\n#ifdef E\n#endif\n};\n} a;\n",
        f"int a = {'(' * 300}1{')' * 300};\n",
        f"void f() {{ for {'/**/ ' * 70}(;;) {{ }} }}\n",
    ],
)
def test_what_the_parser_makes_of_code_holds(text: str) -> None:
    assert _flawed(_row(text)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"node_depths": lambda depths: [0] * len(depths)},
        {"node_depths": lambda depths: [*range(len(depths))]},
        {"node_siblings": lambda siblings: [1] * len(siblings)},
        {"node_types": lambda types: [types[0]] * len(types)},
        {"node_types": lambda types: [*range(len(types))]},
        {"node_starts": lambda starts: [starts[0], starts[0], *starts[2:]]},
        {"node_starts": lambda starts: [1, *starts[1:]]},
        {"node_starts": lambda _: None},
        dict.fromkeys(("node_starts", "node_depths", "node_siblings", "node_types"), lambda _: []),
        {"node_depths": lambda depths: depths[:-1]},
        {"node_types": lambda _: None},
        dict.fromkeys(("chunk_starts", "chunk_ends", "chunk_kinds", "chunk_levels"), lambda _: []),
        {"chunk_kinds": lambda kinds: [len(KINDS), *kinds[1:]]},
        {"chunk_levels": lambda levels: levels[:-1]},
        {"includes": lambda _: []},
        {"includes": lambda includes: includes[::-1]},
        {"includes": lambda includes: [*includes, "<c.h>"]},
        {"chunk_levels": lambda levels: [level + 1 for level in levels]},
        {"chunk_levels": lambda levels: [0] * len(levels)},
        {"chunk_kinds": lambda kinds: [kinds[0]] * len(kinds)},
        {"error_fraction": lambda _: 0.25},
        {"error_fraction": lambda _: 1.0, "provenance_codes": lambda codes: [DEGRADED] * len(codes)},
        {"error_fraction": lambda _: 0.75, "provenance_codes": lambda codes: [DEGRADED] * len(codes)},
        {"provenance_codes": lambda codes: [DEGRADED] * len(codes)},
        {"provenance": lambda _: "degraded"},
        {name: lambda _, value=value: value for name, value in TOO_MANY.items()}
        | {"provenance_codes": lambda codes: [DEGRADED] * len(codes)},
    ],
    ids=lambda change: " ".join(change),
)
def test_structure_that_contradicts_the_text_is_found(change: dict[str, Any]) -> None:
    row = _row()

    assert _flawed(row | {name: value(row[name]) for name, value in change.items()}) == ["a.cpp"]


DECLARED = "#include <a.h>\n" + "".join(
    f"static x_9y g{n};\ntypedef int a{n};\nstatic long b{n}(int c);\nnamespace d{n} {{\nclass e{n} {{\n}};\n// of\n}}\n"
    f"static long f{n}() {{ }}\n"
    for n in range(8)
)
STATIC = len("static ")


def _moved(row: dict[str, Any], step: int, places: Iterable[int]) -> dict[str, Any]:
    """Return where chunks begin and end once those at some places of the list begin so many bytes later."""
    chosen = set(places)
    starts = [start + step * (place in chosen) for place, start in enumerate(row["chunk_starts"])]
    return {"chunk_starts": starts, "chunk_ends": [*starts[1:], row["chunk_ends"][-1]]}


def _of_kind(row: dict[str, Any], *kinds: ChunkKind) -> list[int]:
    return [place for place, code in enumerate(row["chunk_kinds"]) if KINDS[code] in kinds]


@pytest.mark.parametrize(("step", "is_flawed"), [(0, False), (8, True), (9, True), (10, True)])
def test_one_chunk_that_begins_within_a_word_is_found(step: int, is_flawed: bool) -> None:
    row = _row(DECLARED)
    (first, *_) = _of_kind(row, ChunkKind.OTHER)
    start = row["text"].index("static x_9y g0;") - row["chunk_starts"][first]

    assert _flawed(row) == []
    assert _flawed(row | _moved(row, start + step, [first])) == ["a.cpp"] * is_flawed


def test_what_ends_a_text_is_not_before_its_beginning() -> None:
    assert _flawed(_row("int a; // of_")) == []


@pytest.mark.parametrize("num_more", [0, 1])
def test_a_few_chunks_may_begin_after_another_word_of_their_declaration(num_more: int) -> None:
    row = _row(DECLARED)
    moved = _of_kind(row, ChunkKind.OTHER, ChunkKind.FUNC_SIG)
    steps = [row["text"].index("static", row["chunk_starts"][place]) - row["chunk_starts"][place] for place in moved]
    named = list(zip(row["chunk_kinds"], row["chunk_levels"], strict=True))
    limit = int(2 + 0.3 * sum(one != before for before, one in pairwise([None, *named])))

    assert set(steps) == {steps[0]}
    assert _flawed(row | _moved(row, steps[0] + STATIC, moved[: limit + num_more])) == ["a.cpp"] * num_more


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        (ChunkKind.FUNC_SIG, ChunkKind.TYPEDEF),
        (ChunkKind.TYPEDEF, ChunkKind.FUNC_SIG),
        (ChunkKind.NAMESPACE, ChunkKind.CLASS_DECL),
        (ChunkKind.NAMESPACE, ChunkKind.OTHER),
        (ChunkKind.NAMESPACE, ChunkKind.COMMENT),
        (ChunkKind.CLASS_DECL, ChunkKind.NAMESPACE),
        (ChunkKind.CLASS_DECL, ChunkKind.OTHER),
        (ChunkKind.TYPEDEF, ChunkKind.CLASS_MEMBER),
        (ChunkKind.OTHER, ChunkKind.CLASS_DECL),
        (ChunkKind.OTHER, ChunkKind.NAMESPACE),
        (ChunkKind.OTHER, ChunkKind.FUNC_SIG),
        (ChunkKind.FUNC_SIG, ChunkKind.COMMENT),
    ],
)
def test_chunks_that_are_called_another_kind_are_found(kind: ChunkKind, other: ChunkKind) -> None:
    row = _row(DECLARED)
    kinds = [KINDS.index(other) if KINDS[code] is kind else code for code in row["chunk_kinds"]]

    assert kinds != row["chunk_kinds"]
    assert _flawed(row | {"chunk_kinds": kinds}) == ["a.cpp"]


@pytest.mark.parametrize(("kind", "text"), [(ChunkKind.OTHER, "// of\n"), (ChunkKind.COMMENT, "// of\nint a;\n")])
def test_a_comment_alone_is_called_so_and_nothing_else(kind: ChunkKind, text: str) -> None:
    row = _row(text)

    assert _flawed(row) == []
    assert _flawed(row | {"chunk_kinds": [KINDS.index(kind)] * len(row["chunk_kinds"])}) == ["a.cpp"]


@pytest.mark.parametrize("change", [{"node_siblings": -1}, {"node_depths": 1}], ids=lambda change: " ".join(change))
def test_one_bracket_that_does_not_belong_to_its_other_one_is_found(change: dict[str, int]) -> None:
    row = _row("void f();\n")
    ((name, step),) = change.items()
    leaves = [int(each) for each in row[name]]
    leaves[-2] += step

    assert row["node_starts"][-2] == row["text"].index(")")
    assert _flawed(row) == []
    assert _flawed(row | {name: leaves}) == ["a.cpp"]


@pytest.mark.parametrize(("mark", "is_known"), [("${", True), ("{%", True), (" {", False)])
def test_a_bracket_that_is_part_of_a_longer_leaf_is_of_another_type(mark: str, is_known: bool) -> None:
    chunk = {"chunk_starts": [0], "chunk_ends": [10], "chunk_kinds": [0], "chunk_levels": [0]}
    leaves = {
        "node_starts": [0, 1, 4, 5, 6],
        "node_depths": [1, 2, 2, 2, 1],
        "node_siblings": [0, 0, 1, 2, 2],
        "node_types": [1, 2, 3, 4, 4],
    }
    row = _row("int a;\n") | {"text": f"{{ {mark}a}} }}\n"} | chunk | leaves

    assert _flawed(row, not_preprocessed=[".cpp"]) == ([] if is_known else ["a.cpp"])


@pytest.mark.parametrize(("num_texts", "num_torn", "holds"), [(1, 1, True), (20, 5, True), (20, 11, False)])
def test_a_few_leaves_may_be_otherwise_and_a_share_of_many(num_texts: int, num_torn: int, holds: bool) -> None:
    row = _row("int aa;\n" * num_texts)
    starts = [int(start) for start in row["node_starts"]]
    starts[1 : 3 * num_torn : 3] = [start - 1 for start in starts[1 : 3 * num_torn : 3]]

    assert _flawed(row | {"node_starts": starts}) == ([] if holds else ["a.cpp"])


def test_of_a_text_with_errors_no_leaf_or_include_is_expected() -> None:
    assert _flawed(_row("struct A {\n{ int b; }\n} c;\n", "a.c")) == []
    assert _flawed(_row("#include <a.h>\n)\n") | {"includes": []}) == []


def test_a_part_of_a_chunk_that_was_cut_begins_as_it_may() -> None:
    text = "void f() { a(); b(); }\n"
    row = _row(text)
    edges = {"chunk_starts": [0, 9, text.index("b")], "chunk_ends": [9, text.index("b"), len(text)]}
    cut = row | edges | {name: [*row[name], row[name][-1]] for name in ("chunk_kinds", "chunk_levels")}
    comments = _row("// a\nint b;\n") | {"chunk_starts": [0, 5], "chunk_ends": [5, 12], "chunk_levels": [0, 0]}

    assert _flawed(cut) == []
    assert _flawed(comments | {"chunk_kinds": [KINDS.index(ChunkKind.COMMENT)] * 2}) == ["a.cpp"]


def test_chunks_and_includes_of_a_language_without_the_preprocessor_are_those_of_its_entry() -> None:
    text = "import a;\nclass A { int b() { return 1; } };\n"
    row = _row(text) | {"includes": ["a"]}
    preamble = row | {"chunk_kinds": [KINDS.index(ChunkKind.PREAMBLE)] * len(row["chunk_kinds"])}

    assert _flawed(preamble) == ["a.cpp"]
    assert _flawed(preamble, not_preprocessed=[".cpp"]) == []
    kinds = {"chunk_kinds": [KINDS.index(ChunkKind.OTHER)]}
    assert _flawed(_row("#include <a.h>\n") | kinds, not_preprocessed=[".cpp"]) == []
    for name, wrong in (("chunk_levels", 2), ("node_depths", 0), ("chunk_kinds", KINDS.index(ChunkKind.COMMENT))):
        flawed = preamble | {name: [wrong] * len(row[name])}
        assert _flawed(flawed, not_preprocessed=[".cpp"]) == ["a.cpp"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("int f() { return 1; }\n", ChunkKind.COMMENT),
        ("int f() { return 1; }\n", ChunkKind.PREAMBLE),
        ("int f() { return 1; }\n", ChunkKind.FUNC_BODY),
        ("#include <a.h>\nint f() { return 1; }\n", ChunkKind.PREAMBLE),
        ("int a;\n", ChunkKind.PREAMBLE),
        ("#include <a.h>\n", ChunkKind.OTHER),
        ("#include <a.h>\nint f();\n", ChunkKind.FUNC_SIG),
        ("{ }\n", ChunkKind.OTHER),
        ("class A { int a; };\n", ChunkKind.CLASS_MEMBER),
    ],
)
def test_one_chunk_of_a_kind_begins_as_others_of_it_do(text: str, kind: ChunkKind) -> None:
    chunk = {"chunk_starts": [0], "chunk_ends": [len(text)], "chunk_kinds": [KINDS.index(kind)], "chunk_levels": [0]}

    assert _flawed(_row(text) | chunk) == (["a.cpp"] if kind is not ChunkKind.CLASS_MEMBER else [])


def test_a_degraded_document_is_so_for_its_errors_or_its_limits() -> None:
    codes = {"provenance_starts": [0], "provenance_codes": [DEGRADED]}
    empty = dict.fromkeys(("node_starts", "node_depths", "node_siblings", "node_types"))
    row = _row() | codes | TOO_MANY

    assert _flawed(row | {"error_fraction": 0.6}) == []
    assert _flawed(row | empty | {"error_fraction": 1.0, "provenance_detail": "max_num_bytes", "includes": []}) == []
    assert _flawed(row | {"error_fraction": 0.0, "provenance_detail": "tool_failed: crash"}) == []
    assert _flawed(row | {"error_fraction": 0.4}) == ["a.cpp"]


@pytest.mark.parametrize(("share", "holds"), [(0.25, True), (0.5 + 1e-7, True), (0.75, False)])
def test_a_document_whose_errors_are_within_the_limit_is_not_degraded(share: float, holds: bool) -> None:
    text = "int aa;\n"
    codes = {"provenance_starts": [0, round(share * len(text))], "provenance_codes": [DEGRADED, 0]}

    assert _flawed(_row(text) | codes | {"error_fraction": share}) == ([] if holds else ["a.cpp"])


@pytest.mark.parametrize(
    ("texts", "flawed"),
    [
        ({"a.cpp": '#include "b.h"\n', "b.h": "int b;\n"}, ["a.cpp"]),
        ({"b.h": "int b;\n", "a.cpp": '#include "b.h"\n'}, []),
        ({"a.cpp": "#include <b.h>\n", "b.h": "int b;\n"}, []),
        ({"a.h": '#include "b.h"\n', "b.h": '#include "a.h"\n'}, []),
        ({"x/a.h": '#include "b.h"\n', "x/b.h": '#include "c.h"\n', "c.h": '#include "x/a.h"\n'}, []),
        ({"x/a.h": '#include "b.h"\n', "x/b.h": "int b;\n"}, ["x/a.h"]),
        ({"x/a.h": '#include "b.h"\n', "b.h": "int b;\n"}, []),
    ],
)
def test_headers_come_before_what_includes_them(texts: dict[str, str], flawed: list[str]) -> None:
    assert _flawed(*(_row(text, path, order) for order, (path, text) in enumerate(texts.items()))) == flawed


def test_headers_of_another_shard_have_no_place_in_the_order() -> None:
    texts = {"a.cpp": '#include "b.h"\n', "c.cpp": "int c;\n", "b.h": "int b;\n"}
    rows = [_row(text, path) for path, text in texts.items()]

    assert _flawed(*(row | {"order_in_source": order} for row, order in zip(rows, (0, 0, 1), strict=True))) == []
    assert _flawed(*(row | {"order_in_source": order} for order, row in enumerate(rows))) == ["a.cpp"]


def test_the_documents_with_the_smallest_ids_are_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [_row(path=path) | {"includes": ["<c.h>"]} for path in ("a.cpp", "b.cpp", "c.cpp", "d.py.cpp")]

    assert _flawed(*rows) == ["a.cpp", "b.cpp", "c.cpp", "d.py.cpp"]
    monkeypatch.setattr(audited_structure, "MAX_BYTES_SCANNED", len(TEXT) + 1)
    assert _flawed(*rows) == ["a.cpp", "b.cpp"]
    assert _flawed(rows[0] | {"path": "a.py", "document_id": "0"}) == []


def test_a_change_is_cut_at_its_marks_into_chunks_of_no_kind() -> None:
    text = "// commit: one\n// path: a.c\n//@@ before\nint a;\n//@@ after\nint b;\n"
    place = {"filepath_stable_id": "1", "file_local_commit_index": 0}
    names = {"source": "one", "path": f"{'0' * 40}:a.c", "split": "train", "text": text, "text_sha256": "0"}
    row = asdict(record_of(parse_document({**names, **place, "document_id": "1"}, SyntaxParams())))
    others = [
        {"chunk_kinds": [KINDS.index(ChunkKind.COMMENT), *row["chunk_kinds"][1:]]},
        {"chunk_levels": [*row["chunk_levels"][:-1], 1]},
        {"chunk_starts": [0, 1, *row["chunk_starts"][2:]]},
        {"includes": ["<a.h>"]},
        {"node_starts": [0], "node_depths": [0], "node_siblings": [0], "node_types": [0]},
    ]

    assert len(row["chunk_starts"]) > 2
    assert _flawed(row) == []
    assert [change for change in others if _flawed(row | change) == []] == []


def test_columns_are_those_of_the_table() -> None:
    fields = pa.schema(table_of_records(EnrichedDocument, []).schema).names

    assert set(audited_structure.OF_STRUCTURE) <= set(fields)


@pytest.mark.parametrize(
    ("path", "language", "holds"),
    [
        ("a.cpp", "cpp", True),
        ("a.CPP", "cpp", True),
        ("a.C", "cpp", True),
        ("a.h", "c", True),
        ("a.cpp", "c", False),
        ("a.c", "cpp", False),
        ("a.C", "c", False),
        ("a.rs", "cpp", False),
    ],
)
def test_a_document_is_in_a_language_of_its_suffix(path: str, language: str, holds: bool) -> None:
    assert _flawed(_row() | {"path": path, "language": language}) == ([] if holds else [path])
