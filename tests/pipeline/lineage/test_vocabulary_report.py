"""A vocabulary is reported by kind of chunk, counting a token where it begins."""

import json

import pytest

from pipeline.cli.main import main
from pipeline.core.records import ChunkKind
from pipeline.lineage.vocabulary_report import vocabulary_report
from pipeline.stages.tokenize.vocabulary import load_vocabulary
from pipeline.store.store import Store


def test_the_command_reports_a_vocabulary_by_kind(tiny_store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["vocabulary", "tiny-1024", "--report", "--corpus", "tiny", "--store", str(tiny_store.root), "--json"]
    assert main(line) == 0
    report = json.loads(capsys.readouterr().out)

    assert sum(row["num_tokens"] for row in report["kinds"]) == report["num_tokens"] > 0
    assert {row["kind"] for row in report["kinds"]} <= {kind.name.lower() for kind in ChunkKind}


def test_a_report_counts_tokens_where_they_begin() -> None:
    text = "// abc\nint x;\n"
    vocabulary = load_vocabulary("tiny-1024")
    report = vocabulary_report(vocabulary, [text], [([0, 7], [6, 0])])
    tokens = vocabulary.tokenizer.encode(text).ids
    comment = vocabulary.tokenizer.encode("// abc\n").ids

    assert report["num_tokens"] == len(tokens)
    assert report["bytes_per_token"] == pytest.approx(14 / len(tokens), abs=1e-4)
    assert {row["kind"]: row["num_tokens"] for row in report["kinds"]} == {
        "other": len(tokens) - len(comment),
        "comment": len(comment),
    }
