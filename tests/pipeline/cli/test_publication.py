"""Export formats and descriptions are declared once: one that a program registers is offered and written."""

import json
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.cli.publication import DESCRIPTIONS
from pipeline.export.export import ExportFormat
from pipeline.store.store import Store


def test_a_description_registered_at_run_time_is_listed_and_printed(
    tiny_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["card", "--corpus", "tiny", "--of", "last", "--as", "facts", "--store", str(tiny_store.root)]
    assert main(command) == 2
    with DESCRIPTIONS.registered(ExportFormat("facts", "builtins:repr", "the facts themselves")):
        with pytest.raises(SystemExit):
            main(["card", "--help"])
        assert "facts: the facts themselves" in " ".join(capsys.readouterr().out.split())
        assert main(command) == 0
    assert capsys.readouterr().out.startswith("Facts(snapshot=")


def test_what_a_gate_blocked_has_no_card_which_names_the_gate_and_the_corpus_that_was_asked(
    blocked_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["card", "--of", "last", "--corpus", "mine", "--store", str(blocked_store.root)]) == 1
    said = capsys.readouterr().err
    assert ", where documents_are_kept blocked its build; expected a snapshot" in said
    assert "`python -m pipeline show last --corpus mine" in said


def test_an_export_prints_what_it_wrote_as_json(
    tiny_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["export", "megatron", "--corpus", "tiny", "--out", str(tmp_path), "--store", str(tiny_store.root)]) == 0
    )

    written = json.loads(" ".join(capsys.readouterr().out.split()).partition(f"in {tmp_path}: ")[2])
    assert written["train"]["num_documents"] > written["held_out"]["num_documents"] > 0


def test_a_vocabulary_is_trained_into_a_folder_of_any_name(
    tiny_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["vocabulary", "small-300", "--train", "--size", "300", "--corpus", "tiny", "--out", str(tmp_path / "mine")]

    assert main([*line, "--store", str(tiny_store.root), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["size"] == 300
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {"tokenizer.json", "vocabulary.toml"}
    assert main(["vocabulary", "more", "--extends", "tiny-1024"]) == 1
    assert "vocabulary --extends: --train is missing" in capsys.readouterr().err
