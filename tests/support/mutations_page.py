"""Page of the mutations, docs/mutations.md, a row each: those of what was not run again stay, and what people wrote below them."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutations.mutation import Kind, Outcome, Status

_HEAD = """# Mutations

Made by `make mutations`, which keeps the sections below the table and the rows of what it did not run again; do not edit the rest.
Each row is a fault that was planted on purpose, what was expected to go red over it, and what did. How to add one is in
`tests/mutations/__init__.py`.

{summary}

| mutation | planted | expected | went red | |
|---|---|---|---|---|
"""
_ROW = re.compile(r"\| `([^`]+)` \|.*\| (?:\*\*(.+)\*\*)? ?\|")
_OPEN = (Status.KILLED_BY_ANOTHER, Status.SURVIVED, Status.NOT_PLANTED)


def updated_page(path: Path, outcomes: Sequence[Outcome], kinds: Mapping[str, Kind]) -> str:
    """Return the page with new outcomes. `kinds` holds every mutation that there is, in the order of the rows."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    table, found, sections = before.partition("\n## ")
    rows = {match[1]: match[0] for match in _ROW.finditer(table)} | {each.name: _row(each) for each in outcomes}
    shown = {name: rows[name] for name in kinds if name in rows}
    lines = "".join(f"{row}\n" for row in shown.values())
    return _HEAD.format(summary=_summary(shown, kinds)) + lines + found + sections


class PageCounts(NamedTuple):
    """Counts of a page: of the faults that there are, and of the controls."""

    num_faults: int
    num_killed: int
    num_survived: int
    num_not_run: int
    num_controls: int
    num_green: int


def counted(path: Path, kinds: Mapping[str, Kind]) -> PageCounts:
    """Count the rows of a page. `kinds` holds every mutation that there is: one without a row was not run."""
    table = path.read_text(encoding="utf-8").partition("\n## ")[0]
    rows = {match[1]: match[0] for match in _ROW.finditer(table) if match[1] in kinds}
    faults, controls = (_statuses(rows, kinds, of_controls=each) for each in (False, True))
    num_controls = sum(kind is Kind.CONTROL for kind in kinds.values())
    num_faults = len(kinds) - num_controls
    num_open = faults.total() - faults[""]
    return PageCounts(num_faults, faults[""], num_open, num_faults - faults.total(), num_controls, controls[""])


def signals(outcome: Outcome) -> list[str]:
    """Return the names of what went red, each once."""
    return list(dict.fromkeys(line.split(" ", 1)[0] for line in outcome.red))


def _row(outcome: Outcome) -> str:
    expected, red = " or ".join(outcome.expected) or "nothing", ", ".join(signals(outcome)) or "nothing"
    status = "" if outcome.holds else f"**{outcome.status}** "
    return f"| `{outcome.name}` | {_cell(outcome.planted)} | {_cell(expected)} | {_cell(red)} | {status}|"


def _summary(rows: Mapping[str, str], kinds: Mapping[str, Kind]) -> str:
    faults, controls = (_statuses(rows, kinds, of_controls=each) for each in (False, True))
    other = ", ".join(f"{faults[status]} {status}" for status in _OPEN)
    return (
        f"Killed {faults['']} of {faults.total()} planted, {other}; {controls['']} of {controls.total()} controls survived; "
        f"{len(kinds) - len(rows)} of {len(kinds)} not run yet."
    )


def _statuses(rows: Mapping[str, str], kinds: Mapping[str, Kind], *, of_controls: bool) -> Counter[str]:
    """Count the rows of faults or of controls by status; the empty one is as it should be."""
    chosen: Iterable[str] = (row for name, row in rows.items() if (kinds[name] is Kind.CONTROL) is of_controls)
    matches = (_ROW.fullmatch(row) for row in chosen)
    return Counter(match[2] or "" for match in matches if match)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("\n", " ")
