"""The SPDX bill of materials describes every source."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.export.card import Facts
from pipeline.export.spdx import bill_of_materials
from pipeline.store.store import Store


def test_the_bill_of_materials_has_a_package_a_source_with_its_licenses(
    tiny_store: Store, facts: Facts, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["card", "--corpus", "tiny", "--as", "spdx", "--store", str(tiny_store.root)]) == 0
    content = json.loads(capsys.readouterr().out)
    packages = {package["SPDXID"]: package for package in content["packages"]}
    identifiers = Counter(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name) is not None for name in packages)
    assert identifiers == {True: 1 + len(facts.snapshot.sources)}
    for source in facts.snapshot.sources:
        concluded = packages[f"SPDXRef-Source-{source.name}"]["licenseConcluded"]
        assert all(license in concluded for license in source.licenses)
    generated = [entry for entry in content["relationships"] if entry["relationshipType"] == "GENERATED_FROM"]
    files = {file["SPDXID"] for file in content["files"]}
    assert {entry["relatedSpdxElement"] for entry in generated} == (packages.keys() - {"SPDXRef-Snapshot"}) | files
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", content["creationInfo"]["created"])


def test_the_validator_of_spdx_finds_nothing_where_it_is_installed(facts: Facts, tmp_path: Path) -> None:
    parser = pytest.importorskip("spdx_tools.spdx.parser.parse_anything", reason="spdx-tools is not installed")
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

    (tmp_path / "sbom.spdx.json").write_text(json.dumps(bill_of_materials(facts)))
    document = parser.parse_file(str(tmp_path / "sbom.spdx.json"))

    assert len(document.files) == sum(source.num_documents for source in facts.snapshot.sources)
    assert [each.validation_message for each in validate_full_spdx_document(document)] == []
