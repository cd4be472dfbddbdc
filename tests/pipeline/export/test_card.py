"""A snapshot's descriptions say what the snapshot holds, in the words of their standards."""

from pipeline.export.card import Facts, markdown_card


def test_the_card_names_every_source_license_drop_and_gate(facts: Facts) -> None:
    card = markdown_card(facts)
    wanted = {source.name for source in facts.snapshot.sources} | set(facts.licenses)
    wanted |= {reason for report in facts.reports.values() for reason in report.dropped}
    wanted |= {verdict.gate for verdict in facts.verdicts}
    assert [name for name in sorted(wanted) if f"| {name} |" not in card] == []
    assert facts.snapshot.snapshot_id in card
