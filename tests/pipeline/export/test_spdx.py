"""The SPDX bill of materials describes every source."""

import json
import re
from collections import Counter

import pytest

from pipeline.cli.main import main
from pipeline.export.card import Facts
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
    assert {entry["relatedSpdxElement"] for entry in generated} == packages.keys() - {"SPDXRef-Snapshot"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", content["creationInfo"]["created"])
