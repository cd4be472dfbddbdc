"""Data card of a snapshot, as Markdown: contents, origins, licenses, drops and gates.

Everything in it is read from the store: the same snapshot gives the same card.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.build.promotion import evidence, judge_again
from pipeline.build.stage_objects import report_of, stage_of
from pipeline.contracts.gates import GateVerdict, summary
from pipeline.contracts.stage_report import StageReport
from pipeline.lexing.languages import titles
from pipeline.stages.collect.kinds.source_kinds import origin_of
from pipeline.stages.normalize.decided_files import outcomes_in
from pipeline.store.snapshot import Snapshot

_INTENDED = """Training and evaluating models of {} code. Not meant for: finding people, secrets or hosts (what looked
like one is a placeholder), judging the quality of a project, or any use that the licenses below do not allow."""
_LIMITS = """- Licenses are read from tags, license texts, notices and package metadata, by rules, not by a lawyer; a file whose
  evidence is unclear is left out.
- Secrets, e-mail addresses, public network addresses and local paths are found by patterns: what looks like none of them stays.
- Near-duplicates share shingles of five tokens; translations and rewrites of one text are not duplicates here.
- Structure columns say for each token whether a compiler, a parser alone, or a damaged parse produced them."""

_ROWS_ALONE = "The card of its whole bundle tells its gates, what was left out, and decisions of people"

_MARKUP = re.compile(r"[\\`*\[\]<>&|~#!]|(?<![^\W_])_|_(?![^\W_])")
"""Characters that Markdown or HTML reads as more than text: names, paths and reasons may be anyone's."""


class _Written(str):
    """Markdown that this module wrote."""


@dataclass(frozen=True)
class Facts:
    """The facts that a card, Croissant and SPDX are written from."""

    snapshot: Snapshot
    reports: dict[str, StageReport]
    verdicts: tuple[GateVerdict, ...]
    pins: dict[str, dict[str, Any]]
    held_out: tuple[str, ...]
    decisions: tuple[dict[str, Any], ...]
    """Decisions of people about files of the sources, as rows."""
    when: str
    """Time at which the gates of verify judged the snapshot, ISO 8601; empty where a description must not depend on it."""
    live_limits: Mapping[str, str] = field(default_factory=dict)
    """Corpus in which it is live -> the limits that were not the recipe's; empty where a description must not depend on it."""


def facts_of(snapshot: Snapshot, proof: str | None = None) -> Facts:
    """Gather the facts about a snapshot from the store. Raises MissingError if a stage that made it is missing.

    `proof` is the verify stage whose verdicts count: the newest one unless given.
    """
    store = snapshot.store
    stages = evidence(store, snapshot.snapshot_id, proof)
    return Facts(
        snapshot=snapshot,
        reports={stage_of(stored): report_of(stored) for stored in stages},
        verdicts=judge_again(store, snapshot.snapshot_id, proof),
        pins=snapshot.content["pins"],
        held_out=tuple(snapshot.content["held_out"]),
        decisions=tuple(_decisions(snapshot)),
        when=str((store.verdicts(stages[-1].object_id) or {}).get("when", "")),
        live_limits=store.live_limits(snapshot.snapshot_id),
    )


def facts_of_rows(snapshot: Snapshot) -> Facts:
    """Gather what a snapshot itself says, which has nothing beside it of the stages that made it."""
    return Facts(snapshot, {}, (), snapshot.content["pins"], tuple(snapshot.content["held_out"]), (), "")


def markdown_card(facts: Facts) -> str:
    """Write the card as Markdown, one section a question. Without the reports of stages it says where they are."""
    snapshot = facts.snapshot
    proved = f"; proved {facts.when[:10]}" if facts.when else ""
    judged = f"{summary(facts.verdicts)}{proved}" if facts.reports else _ROWS_ALONE
    evidence_sections = [
        *_decision_section(facts),
        "## What was left out\n\n" + _table(("stage", "rule", "records"), _drops(facts)),
        "## Gates\n\n" + _gates_table(facts.verdicts),
    ]
    sections = [
        f"# Snapshot `{snapshot.snapshot_id[:12]}`",
        f"Id `{snapshot.snapshot_id}`. {judged}. Rows of "
        f"{snapshot.row_length} tokens; vocabulary `{snapshot.vocabulary['name']}`, sha256 `{snapshot.vocabulary['sha256']}`.",
        *(
            f"Live in {corpus} by limits that are not the recipe's: {text}."
            for corpus, text in facts.live_limits.items()
        ),
        "## Contents\n\n" + _sources_table(facts),
        "## Intended use\n\n" + _INTENDED.format(titles()),
        "## Licenses\n\n" + _table(("license", "documents"), snapshot.licenses.items()),
        "## Origins\n\n" + _table(("source", "origin", "declared license", "revision"), _origins(facts)),
        *(evidence_sections if facts.reports else []),
        "## Known limits\n\n" + _LIMITS,
    ]
    return "\n\n".join(sections) + "\n"


def _decisions(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    for label, object_id in sorted(snapshot.stored.manifest.inputs.items()):
        if label.startswith("rules/"):
            yield from (outcome.row() for outcome in outcomes_in(snapshot.store.read(object_id)))


def _decision_section(facts: Facts) -> list[str]:
    """Return the section on decisions; none without decisions."""
    columns = ("path", "decision", "person", "date", "reason", "num_files")
    rows = [(row["source"], *(row[name] for name in columns)) for row in facts.decisions]
    table = _table(("source", "files", "decision", "who", "date", "why", "documents"), rows)
    return [f"## Decisions\n\nMade by people, against or before the rules.\n\n{table}"] if rows else []


def _sources_table(facts: Facts) -> str:
    rows: list[Sequence[object]] = []
    for source in facts.snapshot.sources:
        in_part = "in part held out" if source.num_rows_held_out else "train"
        split = "held out" if source.name in facts.held_out else in_part
        rows.append((source.name, split, source.num_documents, source.num_text_bytes, source.num_tokens, source.weight))
    sums = [sum(int(str(row[column])) for row in rows) for column in (2, 3, 4)]
    rows.append(("all", "", *sums, ""))
    return _table(("source", "split", "documents", "bytes of text", "tokens", "weight"), rows)


def _origins(facts: Facts) -> Iterable[Sequence[object]]:
    for name, pin in sorted(facts.pins.items()):
        yield (
            name,
            origin_of(pin).text,
            pin["declared_license"] or "none",
            _code(pin["revision"]),
        )


def _drops(facts: Facts) -> Iterable[Sequence[object]]:
    for stage, report in facts.reports.items():
        for reason, number in sorted(report.dropped.items(), key=lambda item: (-item[1], item[0])):
            yield stage, reason, number


def _gates_table(verdicts: Iterable[GateVerdict]) -> str:
    rows = (
        (verdict.gate, verdict.measured, _Written(f"{verdict.comparison} {verdict.limit:g}"), verdict.outcome)
        for verdict in verdicts
    )
    return _table(("gate", "measured", "limit", "verdict"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, [_Written("---")] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(value) for value in line) + " |" for line in lines)


def _code(text: str) -> _Written:
    """Return a text between backticks, without what would end it or the cell."""
    return _Written("`" + re.sub(r"[`|\s]", " ", text) + "`")


def _cell(value: object) -> str:
    if isinstance(value, (_Written, int, float)):
        return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else f"{value:,}"
    return _MARKUP.sub(r"\\\g<0>", " ".join(str(value).split()))
