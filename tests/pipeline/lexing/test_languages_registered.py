"""A language that is unlike C is declared by its entry alone: registered at run time, every stage and the reports follow it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import CorpusParams
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.core.records import ChunkKind
from pipeline.lexing.languages import C_NODES, LANGUAGES, Declarators, Grammar, Includes, Language, titles
from pipeline.lineage.report import report_corpus
from pipeline.lineage.why import why
from pipeline.pins.local_tree import tree_digest
from pipeline.stages.collect.kinds.local import LocalPin
from pipeline.stages.enrich.params import SyntaxParams
from pipeline.stages.enrich.syntax.parse import parse_text
from pipeline.stages.normalize.contamination.decontaminate import Decontaminator, WholeSolutions
from pipeline.stages.normalize.contamination.evaluation_items import EvaluationItem, items_digest
from pipeline.stages.normalize.params import DecontaminationParams, NormalizeParams
from pipeline.store.store import Store
from tests.pipeline.lexing.test_lexer import HASH_LEXER, code


def resolve(path: str, written: str, by_name: Mapping[str, Sequence[str]]) -> str | None:
    """Find `load("base")` in the file base.made, in any folder."""
    return min(by_name.get(f"{written}.made", ()), default=None)


def languages_of(content: bytes) -> tuple[str, ...]:
    return ("made",) if b"load(" in content else ("c",)


NODES = replace(
    C_NODES,
    comments=frozenset({"preproc_call"}),
    single={},
    namespaces={"struct_specifier": 1},
    classes=frozenset({"union_specifier"}),
    outside_classes={"type_definition": ChunkKind.TYPEDEF},
    statements=frozenset(),
    declarators=Declarators(declarations=frozenset({"declaration"}), prototypes=frozenset({"declaration"})),
    conditionals=frozenset(),
)
MADE = Language(
    "made",
    frozenset({".made"}),
    Grammar("pytest", "tree_sitter_c:language", NODES),  # any distribution that is in no identity of the package
    includes=Includes(re.compile(rb'load\("(\w+)"\)'), "identifier", f"{__name__}:resolve"),
    unit_suffixes=frozenset({".made"}),
    lexer=f"{HASH_LEXER.__module__}:HASH_LEXER",
    title="Made",
)
LIKE_C = replace(
    MADE,
    name="like_c",
    suffixes=frozenset({".lc"}),
    grammar=replace(MADE.grammar, nodes=replace(NODES, single={"type_definition": ChunkKind.PREAMBLE})),
    lexer=Language.lexer,
    title="",
)
"""Comments and brackets of C, names of files that no directive includes, and a preamble without one."""
EITHER = Language(
    "either", frozenset({".mh"}), one_of=("made", "c"), decided_by=f"{__name__}:languages_of", includes=MADE.includes
)
USER = """# It uses "load("no")".
load("base");

# Adds one.
long more(long number);
int class_of;

struct pair { long first; long second; };

union number { long whole; double real; };

typedef long word;

long twice(long number)
{
    return 2 * number;
}
"""
CHUNKS = [
    ("other", 0, '# It uses "load("no")".\nload("base");'),
    ("other", 0, "# Adds one.\nlong more(long number);\nint class_of;"),
    ("namespace", 0, "struct pair {"),
    ("other", 1, "long first; long second;"),
    ("namespace", 0, "};"),
    ("class_decl", 0, "union number {"),
    ("class_member", 1, "long whole; double real;"),
    ("class_decl", 0, "};"),
    ("typedef", 0, "typedef long word;"),
    ("func_sig", 0, "long twice(long number)"),
    ("func_body", 0, "{\n    return 2 * number;\n}"),
]
SOLUTION = code("solved", "  # what each of these lines does is written here, in many words")
FILES = {
    "a_user.made": USER,
    "base.made": code("base"),
    "c.mh": "struct in_c { int x; int y; };\nint in_c(struct in_c);\n" * 2,
    "like.lc": 'typedef struct { long a; } word;\nlong base(word a)\n{\n    return load("base");\n}\n' + code("like"),
    "made.mh": f'load("base");\n{code("either")}',
    "solution.made": code("solved"),
}


@contextmanager
def registered() -> Iterator[None]:
    with LANGUAGES.registered(MADE), LANGUAGES.registered(EITHER), LANGUAGES.registered(LIKE_C):
        yield


def build(root: Path, files: Mapping[str, str], item: Mapping[str, str]) -> tuple[Store, dict[str, StageResult]]:
    folder, items = root / "tree", root / "items"
    for each in (folder, items):
        each.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    (items / "items.jsonl").write_text(json.dumps(item))
    rules = NormalizeParams(decontamination=DecontaminationParams(items_folder=str(items)))
    pin = LocalPin(name="tree", path=folder, digest=tree_digest(folder), declared_license="MIT")
    store = Store(root / "store")
    with open_build(BuildRequest("made", CorpusParams(normalize=rules), (pin,), "a test"), store) as opened:
        return store, {result.stage: result for result in run_stages(opened, "tokenize")}


ITEM = {"id": "theirs/1", "prompt": "Solve it.", "solution": SOLUTION, "language": "made"}


def test_chunks_includes_order_decontamination_why_and_the_report_follow_the_entry(tmp_path: Path) -> None:
    declared = [language.title for language in LANGUAGES if language.title]
    with registered():
        store, results = build(tmp_path, FILES, ITEM)
        outcomes = {
            path: [(step.stage, step.verdict) for step in why(store, "made", "tree", path).steps] for path in FILES
        }
        evidence = {step.stage: step.evidence for step in why(store, "made", "tree", "a_user.made").steps}
        counts = {row["language"]: row["num_files"] for row in report_corpus(store, "made").languages}
        assert titles() == f"{', '.join(declared)} and Made"

    assert [verdict.sentence for verdict in results["enrich"].verdicts if not verdict.passed] == []
    rows = store.read(results["enrich"].parts["tree"]).table("enriched.parquet").to_pylist()
    assert [(row["path"], row["language"], row["includes"]) for row in rows] == [
        ("base.made", "made", []),
        ("a_user.made", "made", ["base"]),
        ("c.mh", "c", []),
        ("like.lc", "like_c", ["base"]),
        ("made.mh", "made", ["base"]),
    ]
    user = rows[1]
    columns = (user[f"chunk_{name}"] for name in ("kinds", "levels", "starts", "ends"))
    chunks = zip(*columns, strict=True)
    assert [(list(ChunkKind)[kind], level, USER[start:end].strip()) for kind, level, start, end in chunks] == CHUNKS
    assert outcomes["solution.made"][-1] == ("normalize", "dropped")
    assert all(outcomes[path][-1] == ("tokenize", "kept") for path in FILES if path != "solution.made")
    assert (evidence["enrich"]["language"], evidence["enrich"]["includes"]) == ("made", ["base"])
    assert (counts["made"], counts["either"]) == (2, 2)


def test_a_registered_language_moves_the_identity_of_each_stage_and_of_parts_without_a_file_of_it(
    tmp_path: Path,
) -> None:
    files, item = {"a.c": code("a")}, {**ITEM, "language": "c"}
    _, before = build(tmp_path, files, item)
    with registered():
        store, after = build(tmp_path, files, item)
    _, again = build(tmp_path, files, item)

    for stage in ("collect", "normalize", "enrich", "tokenize"):
        assert before[stage].object_id == again[stage].object_id != after[stage].object_id
        assert before[stage].parts["tree"] == again[stage].parts["tree"] != after[stage].parts["tree"]
        identity = store.read(after[stage].object_id).manifest.identity
        assert identity["added"] == ["language either", "language like_c", "language made"]
        assert ("pytest" in identity["libraries"]) == (stage == "enrich")
    assert store.read(after["collect"].parts["tree"]).manifest.identity["languages"]["made"] == [".made"]


def test_an_item_is_read_by_the_lexer_of_its_language_and_the_default_is_not_in_the_digest() -> None:
    text = HASH_LEXER.token_hashes(code("solved")), HASH_LEXER.comment_hashes(code("solved")), None
    given = {language: EvaluationItem("a", "p", SOLUTION, language) for language in ("made", "cpp")}
    with registered():
        found = {
            language: Decontaminator([item], DecontaminationParams(), 0).find(*text) for language, item in given.items()
        }
        commented = "\n".join(f"# {line}" for line in SOLUTION.splitlines())
        assert WholeSolutions([given["made"]]).holds(commented)
    assert found["made"] is not None
    assert found["made"].overlap == 1.0
    assert found["cpp"] is None
    assert not WholeSolutions([given["made"]]).holds(commented)
    assert items_digest((given["cpp"],)) == items_digest((EvaluationItem("a", "p", SOLUTION),))
    assert items_digest((given["made"],)) != items_digest((given["cpp"],))


@pytest.mark.parametrize("has_c_preprocessor", [True, False])
def test_branches_are_blanked_in_languages_with_the_preprocessor_of_c_alone(has_c_preprocessor: bool) -> None:
    assert MADE.grammar is not None
    language = replace(MADE, grammar=replace(MADE.grammar, has_c_preprocessor=has_c_preprocessor))
    text = b"void f(void) {\n#ifdef A\nif (x) {\n#else\nif (y) {\n#endif\n}\n}\n"
    assert bool(parse_text(text, language, SyntaxParams()).blanked) == has_c_preprocessor
