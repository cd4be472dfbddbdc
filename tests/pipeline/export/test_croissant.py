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
