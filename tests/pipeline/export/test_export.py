"""Snapshots are exported in the registered formats, into an empty folder."""

import json
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.core.errors import StageError
from pipeline.export.export import EXPORT_FORMATS, ExportFormat, export
from pipeline.store.snapshot import Snapshot
from pipeline.store.store import Store


def write_names(snapshot: Snapshot, out: Path) -> list[str]:
    """The writer of a format that the package does not have."""
    names = [source.name for source in snapshot.sources]
    (out / "names.txt").write_text("\n".join(names))
    return names


def test_a_format_registered_at_run_time_is_offered_and_written_by_the_command_line(
    tiny_store: Store, snapshot: Snapshot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["export", "names", "--corpus", "tiny", "--store", str(tiny_store.root), "--json", "--out"]
    assert main([*line, str(tmp_path / "before")]) == 2
    with EXPORT_FORMATS.registered(ExportFormat("names", f"{__name__}:write_names", "names of sources")):
        with pytest.raises(SystemExit):
            main(["export", "--help"])
        assert "names: names of sources" in " ".join(capsys.readouterr().out.split())
        assert main([*line, str(tmp_path / "out")]) == 0
    answer = json.loads(capsys.readouterr().out)

    assert answer["written"] == [source.name for source in snapshot.sources]
    assert (tmp_path / "out" / "names.txt").read_text().splitlines() == answer["written"]
    assert (tmp_path / "out" / "tokenizer.json").is_file()


def test_a_folder_with_something_in_it_is_refused(snapshot: Snapshot, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(StageError, match="it is not empty"):
        export(snapshot, "megatron", tmp_path)


@pytest.mark.parametrize("writer", ["no_such_package.writer:write", f"{__name__}:write_nothing"])
def test_a_format_without_its_writer_is_refused_by_name_before_a_folder_is_made(
    tiny_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], writer: str
) -> None:
    line = ["export", "names", "--corpus", "tiny", "--store", str(tiny_store.root), "--out", str(tmp_path / "out")]
    with EXPORT_FORMATS.registered(ExportFormat("names", writer, "names of sources")):
        assert main(line) == 1
    error = " ".join(capsys.readouterr().err.split())

    assert f"export format names: its writer '{writer}' cannot be imported" in error
    assert "or correct the declaration" in error
    assert not (tmp_path / "out").exists()
