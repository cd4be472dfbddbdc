"""A snapshot's descriptions say what the snapshot holds, in the words of their standards."""

import json
import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipeline.cli.main import main
from pipeline.core.digests import file_sha256
from pipeline.export.card import Facts, facts_of, markdown_card
from pipeline.export.export import export
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store


@pytest.fixture(scope="module")
def facts(tiny_store: Store) -> Facts:
    return facts_of(open_snapshot(tiny_store, tiny_store.ref("tiny", "live") or ""))


def printed(store: Store, form: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["card", "--corpus", "tiny", "--as", form, "--store", str(store.root)]) == 0
    return capsys.readouterr().out


def test_the_card_names_every_source_license_drop_and_gate(facts: Facts) -> None:
    card = markdown_card(facts)
    wanted = {source.name for source in facts.snapshot.sources} | set(facts.licenses)
    wanted |= {reason for report in facts.reports.values() for reason in report.dropped}
    wanted |= {verdict.gate for verdict in facts.verdicts}
    assert [name for name in sorted(wanted) if f"| {name} |" not in card] == []
    assert facts.snapshot.snapshot_id in card


def test_the_croissant_names_every_file_of_the_view_by_its_digest_and_every_column(
    tiny_store: Store, facts: Facts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(printed(tiny_store, "croissant", capsys))
    export(facts.snapshot, "huggingface", tmp_path / "out")
    files = {entry["contentUrl"]: entry for entry in content["distribution"] if entry["@type"] == "cr:FileObject"}

    assert sorted(files) == sorted(str(path.relative_to(tmp_path / "out")) for path in tmp_path.rglob("*.parquet"))
    assert all(file_sha256(tmp_path / "out" / name) == entry["sha256"] for name, entry in files.items())
    columns = {field["source"]["extract"]["column"] for field in content["recordSet"][0]["field"]}
    assert columns == set(pq.read_schema(next(tmp_path.rglob("documents/*.parquet"))).names)
    assert json.loads((tmp_path / "out" / "croissant.json").read_text()) == content


def test_the_bill_of_materials_has_a_package_a_source_with_its_licenses(
    tiny_store: Store, facts: Facts, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(printed(tiny_store, "spdx", capsys))
    packages = {package["SPDXID"]: package for package in content["packages"]}
    identifiers = Counter(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name) is not None for name in packages)
    assert identifiers == {True: 1 + len(facts.snapshot.sources)}
    for source in facts.snapshot.sources:
        concluded = packages[f"SPDXRef-Source-{source.name}"]["licenseConcluded"]
        assert all(license in concluded for license in source.licenses)
    generated = [entry for entry in content["relationships"] if entry["relationshipType"] == "GENERATED_FROM"]
    assert {entry["relatedSpdxElement"] for entry in generated} == packages.keys() - {"SPDXRef-Snapshot"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", content["creationInfo"]["created"])
