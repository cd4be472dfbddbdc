"""Lexers of languages that are not C: one that a program registers holds in every step, and what follows from its tokens."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import CorpusParams
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.core.errors import ParamsError
from pipeline.core.records import ChunkKind
from pipeline.lexing.cpp import CPP_LEXER
from pipeline.lexing.language_lexers import lexer_of, load_lexer
from pipeline.lexing.languages import C_NODES, CPP, LANGUAGES, Grammar, Language
from pipeline.lexing.lexer import Lexed, Lexer
from pipeline.pins.local_tree import tree_digest
from pipeline.stages.collect.kinds.local import LocalPin
from pipeline.stages.normalize.contamination.evaluation_items import shipped_items
from pipeline.store.store import Store

TAG = "SPDX-License-" + "Identifier:"
SOLUTION = shipped_items()[0].solution
FOUND = re.compile(r'(?P<comment>#[^\n]*)|(?P<token>"""[\s\S]*?(?:"""|\Z)|"[^"\n]*"?|\w+|[:+=&<-][:+=&>]|[^\s\w])')


class HashLexer(Lexer):
    """`#` comments, and literals of several lines between triple quotes."""

    line_markers = ("#",)
    block_markers = ("", "")

    def lex(self, text: str) -> Lexed:
        """Return the tokens and comments of a text."""
        found = [(match.lastgroup, match.span()) for match in FOUND.finditer(text)]
        tokens, comments = ([span for kind, span in found if kind == wanted] for wanted in ("token", "comment"))
        return Lexed.from_characters(text, tokens, comments)


class NestedLexer(Lexer):
    """Comments of C, but nested, as those of Rust are."""

    def lex(self, text: str) -> Lexed:
        """Return the tokens and comments of a text."""
        tokens, comments, depth, opened = [], [], 0, 0
        for match in re.finditer(r"/\*|\*/|//[^\n]*|'?\w+|[^\s\w]", text):
            depth += {"/*": 1, "*/": -1}.get(match[0], 0)
            if match[0] == "/*" and depth == 1:
                opened = match.start()
            elif match[0] == "*/" and depth == 0:
                comments.append((opened, match.end()))
            elif depth == 0:
                (comments if match[0].startswith("//") else tokens).append(match.span())
        return Lexed.from_characters(text, tokens, comments)


HASH_LEXER, NESTED_LEXER = HashLexer(), NestedLexer()
NODES = replace(C_NODES, single={**C_NODES.single, "preproc_call": ChunkKind.COMMENT})
HASH = Language(
    "hash",
    frozenset({".hash"}),
    Grammar("tree-sitter-c", "tree_sitter_c:language", NODES),
    lexer=f"{__name__}:HASH_LEXER",
)


def code(name: str, after: str = "") -> str:
    return "".join(f"long {name}_{n}(long {name}_x) {{ return {name}_x * {n}; }}{after}\n" for n in range(12))


def mail(name: str) -> str:
    return f"{name}@analytical.engine.org"


FILES = {
    "a.c": code("c"),
    "code.hash": f"# planted\n{code('t')}{SOLUTION}",
    "commented.hash": code("u") + "".join(f"# {line}\n" for line in SOLUTION.splitlines()),
    "copy.hash": "# other words, the same code\n" + code("k", "  # each line"),
    "gpl.hash": f"# {TAG} GPL-2.0-only\n{code('g')}",
    "kept.hash": f"# Copyright 2020 <{mail('ada')}>\n# {TAG} ISC\n\n{code('k')}# mail {mail('bob')}\n",
    "literal.hash": f'{code("l")}text = """\n# {TAG} ISC\n""";\n',
    "prose.hash": "# What one reads here is not a program, but a long text about programs.\n" * 3 + "int x;\n",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, dict[str, StageResult]]:
    root = tmp_path_factory.mktemp("languages")
    folder = root / "tree"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    pin = LocalPin(name="tree", path=folder, digest=tree_digest(folder), declared_license="MIT")
    store = Store(Path(root / "store"))
    request = BuildRequest("made", CorpusParams(), (pin,), "a test")
    with LANGUAGES.registered(HASH), open_build(request, store) as opened:
        return store, {result.stage: result for result in run_stages(opened, "enrich")}


def test_files_of_a_registered_language_are_cleaned_by_its_own_comments_and_literals(
    built: tuple[Store, dict[str, StageResult]],
) -> None:
    store, results = built
    tables = store.read(results["normalize"].parts["tree"])
    dropped = {row["path"]: row for row in tables.table("dropped.parquet").to_pylist()}
    documents = {row["path"]: row for row in tables.table("documents.parquet").to_pylist()}
    assert {path: row["reason"] for path, row in dropped.items()} == {
        "code.hash": "contaminated",
        "commented.hash": "contaminated",
        "gpl.hash": "license_refused",
        "prose.hash": "mostly_comments",
    }
    assert "in code" in dropped["code.hash"]["detail"]
    assert "in comments" in dropped["commented.hash"]["detail"]
    assert {path: row["license"] for path, row in documents.items()} == {
        "a.c": "MIT",
        "copy.hash": "MIT",
        "kept.hash": "ISC",
        "literal.hash": "MIT",
    }
    assert documents["kept.hash"]["text"] == FILES["kept.hash"].replace(mail("bob"), "<redacted-email-1>")


def test_comments_are_not_in_shingles_and_the_report_names_the_language(
    built: tuple[Store, dict[str, StageResult]],
) -> None:
    store, results = built
    (lost,) = store.read(results["normalize"].parts["duplicates"]).table("duplicates.parquet").to_pylist()
    assert {lost["path"], lost["keeper_path"]} == {"copy.hash", "kept.hash"}
    assert (lost["reason"], lost["jaccard"]) == ("near_duplicate", 1.0)
    assert results["normalize"].report.measures["num_bytes_cleaned_hash"] > 0


def test_chunks_are_those_of_the_grammar(built: tuple[Store, dict[str, StageResult]]) -> None:
    store, results = built
    rows = store.read(results["enrich"].parts["tree"]).table("enriched.parquet").to_pylist()
    (literal,) = (row for row in rows if row["path"] == "literal.hash")
    assert literal["language"] == "hash"
    assert "func_body" in {list(ChunkKind)[kind].value for kind in literal["chunk_kinds"]}


def test_an_entry_loads_its_lexer_with_the_first_text_and_other_files_are_read_as_cpp() -> None:
    wrong = {"no.such.module:LEXER": "cannot be imported", "json:dumps": "gives function; expected Lexer"}
    for name, message in wrong.items():
        with pytest.raises(ParamsError, match=f"language hash: its lexer.* {message}"):
            load_lexer(replace(HASH, lexer=name))
    with LANGUAGES.registered(HASH):
        assert lexer_of("src/a.hash") is HASH_LEXER
    assert [lexer_of(path) for path in ("a.c", "a.h", "LICENSE", "a.hash")] == [load_lexer(CPP)] * 4


@pytest.mark.parametrize(
    ("text", "header", "leading"),
    [
        ("# Copyright A\n# B\n\n# what\nx # y", "# Copyright A\n# B", "# Copyright A\n# B\n\n# what"),
        ("#!/bin/x\n\n#é License\nx\n", "#!/bin/x\n\n#é License", "#!/bin/x\n\n#é License"),
        ("# é", "", "# é"),
        ("x # Copyright", "", ""),
        ("", "", ""),
    ],
)
def test_leading_comments_follow_from_the_places_of_tokens_and_comments(text: str, header: str, leading: str) -> None:
    assert text[: HASH_LEXER.license_header_end(text)] == header
    assert text[: HASH_LEXER.leading_comments_end(text)] == leading


def test_tokens_have_the_same_hashes_in_every_language_and_comments_may_nest() -> None:
    text = "a /* \u4e2d /* x; */ y; */ + 'b // c\n"
    assert [text[start:end] for start, end in NESTED_LEXER.comments(text)] == ["/* \u4e2d /* x; */ y; */", "// c"]
    assert NESTED_LEXER.token_hashes("a \u4e2d + b").tolist() == CPP_LEXER.token_hashes("a \u4e2d+b").tolist()
    assert NESTED_LEXER.num_visible_in_comments(text) == sum(len(each) for each in text[2:].split()) - len("+'b")
    code = "x = y;\nz = x;"
    assert HASH_LEXER.comment_hashes("## x = y;\n  # z = x;").tolist() == CPP_LEXER.token_hashes(code).tolist()
    assert HASH_LEXER.comment_hashes("# x = y;\n").tolist() == []
