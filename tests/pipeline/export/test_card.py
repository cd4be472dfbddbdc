"""A snapshot's descriptions say what the snapshot holds, in the terms of their standards."""

import re
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pipeline.export.card import Facts, markdown_card
from pipeline.export.spdx import bill_of_materials
from pipeline.pins.pins import SourcePin
from pipeline.stages.collect.kinds.source_kind import Origin, SourceKind
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS


def test_the_card_names_every_source_license_drop_and_gate(facts: Facts) -> None:
    card = markdown_card(facts)
    wanted = {source.name for source in facts.snapshot.sources} | set(facts.snapshot.licenses)
    wanted |= {reason for report in facts.reports.values() for reason in report.dropped}
    wanted |= {verdict.gate for verdict in facts.verdicts}
    assert [name for name in sorted(wanted) if f"| {name} |" not in card] == []
    assert facts.snapshot.snapshot_id in card
    by_rule = markdown_card(
        replace(facts, held_out=())
    )  # as where a glob or a hash holds out files, and no source whole
    splits = {
        row.split(" | ")[0].strip("| "): row.split(" | ")[1] for text in (card, by_rule) for row in _of_sources(text)
    }
    of_training = dict.fromkeys(("lantern", "loom", "odds", "quarry"), "train")
    assert splits == {"heron": "in part held out", **of_training}
    assert "| heron | held out |" in card


def _of_sources(card: str) -> list[str]:
    return [
        line
        for line in card.partition("## Intended use")[0].splitlines()
        if re.match(r"\| [a-z]+ \| (train|in part)", line)
    ]


def test_what_a_source_says_is_text_and_no_markup(facts: Facts) -> None:
    row = {"source": "a", "path": "x|y/**", "decision": "license MIT", "person": "<b>A</b>", "date": "", "num_files": 1}
    reason = "[see](javascript:x) ![i](h) `c` *b* _i_ a_b &amp; #1\n| x |"
    card = markdown_card(replace(facts, decisions=({**row, "reason": reason},)))
    (line,) = [line for line in card.splitlines() if line.startswith("| a | x")]
    assert re.findall(r"(?<!\\)[`*\[\]<>&#!]", line) == []
    assert len(re.findall(r"(?<!\\)\|", line)) == 8
    assert r"x\|y/\*\*" in line
    assert r"\_i\_ a_b" in line


class TicketPin(SourcePin):
    """A kind of pin that only this test knows."""

    kind: Literal["ticket"] = "ticket"
    sha256: str
    revision_field: ClassVar[str] = "sha256"


def test_a_kind_of_source_registered_at_run_time_describes_its_sources(facts: Facts) -> None:
    def never(*arguments: object) -> Any:
        raise AssertionError

    name, pin = next(iter(facts.pins.items()))
    changed = replace(facts, pins={**facts.pins, name: {**pin, "kind": "ticket"}})
    kind = SourceKind(TicketPin, never, never, origin=lambda pin: Origin(f"ticket of {pin['name']}", "pkg:ticket/7"))
    with SOURCE_KINDS.registered(kind):
        card, packages = markdown_card(changed), bill_of_materials(changed)["packages"]
    elsewhere, unknown = markdown_card(changed), bill_of_materials(changed)["packages"]
    package = next(entry for entry in packages if entry["name"] == name)

    assert f"| {name} | ticket of {name} |" in card
    assert package["sourceInfo"].startswith(f"ticket of {name}; ")
    assert package["externalRefs"][0]["referenceLocator"] == "pkg:ticket/7"
    assert package["checksums"] == [{"algorithm": "SHA256", "checksumValue": pin["revision"]}]
    # A process that has not registered the kind names the source by what is stored.
    assert f"| {name} | ticket {pin['revision'][:12]} |" in elsewhere
    assert next(entry for entry in unknown if entry["name"] == name).keys() == package.keys() - {
        "externalRefs",
        "checksums",
    }
