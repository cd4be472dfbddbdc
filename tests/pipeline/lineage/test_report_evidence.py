"""A report shows what was judged, what tokens there are, which canaries were caught, when refs moved, and what changed."""

from copy import deepcopy
from dataclasses import replace
from hashlib import sha256
from types import SimpleNamespace

import pytest

from pipeline.contracts.gates import GATES
from pipeline.lineage import report_evidence
from pipeline.lineage.report import Report, report_corpus
from pipeline.lineage.report_evidence import left_rows
from pipeline.lineage.report_page import render_page
from pipeline.store.refs import LAST
from pipeline.store.store import Store


def test_each_gate_has_its_verdict_and_each_canary_was_caught(tiny: Report) -> None:
    assert {row["gate"] for row in tiny.verdicts} == set(GATES.names)
    assert all(row["passed"] and row["when"] for row in tiny.verdicts)
    assert all(row["num_caught"] == row["num_sent"] > 0 and not row["missed"] for row in tiny.canaries)


def test_tokens_and_rows_of_the_sources_are_those_of_the_snapshot(tiny: Report) -> None:
    tokens = {row["source"]: row for row in tiny.tokens}

    assert sum(row["num_tokens"] for row in tiny.sources) == sum(row["num_tokens"] for row in tiny.tokens) > 0
    assert tokens["heron"]["num_rows_train"] == 0 < tokens["heron"]["num_rows_held_out"]
    assert all(sum(row["lanes"].values()) == row["num_text_bytes"] for row in tiny.tokens)


def test_random_literals_that_are_left_are_counted_and_listed_by_reason(tiny: Report) -> None:
    line = f'f("{sha256().hexdigest()}");\n'
    rows = list(left_rows([("mine", "a.c", line * 3), ("mine", "b.c", f"\n{line}"), ("mine", "c.c", "int a;")], 4))
    page = render_page(replace(tiny, left=rows))

    places = ["mine/a.c:1", "mine/a.c:2", "mine/a.c:3", "mine/b.c:2"]
    reason = "hexadecimal, with no name of a secret"
    assert rows == [{"reason": reason, "num_literals": 4, "num_files": 2, "places": places}]
    assert all(each in page for each in (reason, *places))


def test_the_page_names_whole_ids_when_refs_moved_and_what_changed(rebuilt_store: Store) -> None:
    report = report_corpus(rebuilt_store, "tiny")
    page = render_page(report)
    live, candidate = (rebuilt_store.ref("tiny", name) or "" for name in ("live", "candidate"))

    assert (report.change or {})["a"] == live
    assert {"withdrawn"} <= {row["cause"] for row in (report.change or {})["causes"]}
    assert [row["new"] for row in report.refs if row["ref"] in ("live", "candidate")] == [live, candidate, live]
    assert all(name in page for name in (live, candidate, *report.build["stages"].values()))


def test_the_page_compares_with_the_build_before_though_one_of_them_has_no_tokens(rebuilt_store: Store) -> None:
    report = report_corpus(rebuilt_store, "tiny")
    for side in ("a", "b"):
        change = deepcopy(report.change or {})
        change["totals"][side]["num_tokens"] = None
        for row in change["causes"]:
            row["num_tokens"] = None
        page = render_page(replace(report, change=change))

        assert f'<td class="n">{change["causes"][0]["num_bytes"]:+,d}</td><td class="n">—</td>' in page
        assert "tokens then" not in page


def test_the_page_of_a_blocked_build_says_so_first(blocked_store: Store) -> None:
    page = render_page(report_corpus(blocked_store, "mine", of="last"))

    assert page.index("Blocked at normalize") < page.index("documents are kept") < page.index("Waterfall</h2>")


@pytest.mark.parametrize(
    ("moves", "made", "of", "before"),
    [
        ("ABA", "A", None, "B"),
        ("ABADB", "B", None, "D"),
        ("ABADB", "D", "D", "A"),
        ("ABADB", "A", "A", "B"),
        ("AB", "A", LAST, "B"),
        ("AB", "C", LAST, "B"),
        ("AA", "A", None, None),
        ("A", "A", LAST, None),
    ],
)
def test_a_build_is_compared_with_the_one_before_though_it_makes_an_older_snapshot_again(
    moves: str, made: str, of: str | None, before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = [{"ref": "candidate", "new": each} for each in moves]
    store = SimpleNamespace(history=lambda corpus: history)
    build = SimpleNamespace(store=store, corpus="made", snapshot_id=made, of=of)
    monkeypatch.setattr(report_evidence, "stored_build", lambda store, corpus, snapshot_id: snapshot_id)
    monkeypatch.setattr(
        report_evidence, "difference", lambda first, second, limit: SimpleNamespace(as_json=lambda: {"a": first})
    )
    found = report_evidence.change_since(build)  # type: ignore[arg-type]

    assert (found["a"] if found else None) == before
