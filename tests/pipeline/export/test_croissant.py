"""The Croissant description agrees with the files that are exported."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipeline.cli.main import main
from pipeline.core.digests import file_sha256
from pipeline.export.card import Facts
from pipeline.export.export import export
from pipeline.store.store import Store


def test_the_croissant_names_every_file_of_the_view_by_its_digest_and_every_column(
    tiny_store: Store, facts: Facts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["card", "--corpus", "tiny", "--as", "croissant", "--store", str(tiny_store.root)]) == 0
    content = json.loads(capsys.readouterr().out)
    export(facts.snapshot, "huggingface", tmp_path / "out")
    files = {entry["contentUrl"]: entry for entry in content["distribution"] if entry["@type"] == "cr:FileObject"}

    assert sorted(files) == sorted(str(path.relative_to(tmp_path / "out")) for path in tmp_path.rglob("*.parquet"))
    assert all(file_sha256(tmp_path / "out" / name) == entry["sha256"] for name, entry in files.items())
    columns = {field["source"]["extract"]["column"] for field in content["recordSet"][0]["field"]}
    assert columns == set(pq.read_schema(next(tmp_path.rglob("documents/*.parquet"))).names)
    assert json.loads((tmp_path / "out" / "croissant.json").read_text()) == content


def test_mlcommons_own_library_reads_the_documents_where_it_is_installed(facts: Facts, tmp_path: Path) -> None:
    mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    export(facts.snapshot, "huggingface", tmp_path / "out")
    dataset = mlcroissant.Dataset(jsonld=str(tmp_path / "out" / "croissant.json"))
    paths = [each["documents/records/path"].decode() for each in dataset.records("documents/records")]

    tables = [pq.read_table(path) for path in sorted((tmp_path / "out/documents").iterdir())]
    assert sorted(paths) == sorted(path for table in tables for path in table["path"].to_pylist())
