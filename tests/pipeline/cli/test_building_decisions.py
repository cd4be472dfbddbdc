"""Decisions beside the pins are carried out by a build, shown by every command, and refused before anything is built."""

import shutil
from pathlib import Path

import pytest

from pipeline.store.store import Store
from tests.conftest import known_answers
from tests.pipeline.cli.conftest import Run
from tests.pipeline.cli.own_builds import CODE, build, local_tree, write_decisions, write_pins


def test_decisions_beside_the_pins_are_carried_out_and_those_without_effect_are_said(run: Run, tmp_path: Path) -> None:
    unclear = "// Not to be used for forecasts without a permission.\n" + CODE.partition("\n")[2]
    pins = write_pins(tmp_path, local_tree(tmp_path, run, main_c=CODE, other_c=unclear.replace("int f", "long g")))
    assert build(run, pins, "--until", "normalize")[1]["stages"][-1]["dropped"] == {"license_quarantined": 1}
    made = ['source = "mine"\npath = "other.c"\nlicense = "MIT"', 'source = "mine"\npath = "gone.c"\nlicense = "MIT"']
    write_decisions(tmp_path, *made)

    code, answer, said = build(run, pins, "--until", "normalize")

    assert code == 0
    assert answer["stages"][-1]["dropped"] == {}
    assert answer["stages"][-1]["measures"]["num_decisions_without_effect"] == 1
    warning = "The decision about mine/gone.c has no effect"
    assert answer["stages"][-1]["warnings"][0].startswith(warning)
    assert f"warning: {warning}" in said


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('source = "yours"\npath = "a.c"\nlicense = "MIT"', "source is 'yours'; expected one of mine"),
        ('source = "mine"\npath = "a.c"\nlicense = "Mine"', "Mine, which is not an SPDX identifier"),
        ('source = "mine"\npath = "a.c"\nrelease = ["withdrawn"]', "release holds 'withdrawn'"),
        ("source = ", "is not TOML"),
    ],
)
def test_a_decision_that_cannot_be_used_is_one_line_before_anything_is_built(
    entry: str, message: str, run: Run, tmp_path: Path
) -> None:
    pins = write_pins(tmp_path, local_tree(tmp_path, run, main_c=CODE))
    write_decisions(tmp_path, entry)

    code, answer, said = build(run, pins)

    assert (code, answer["error"]) == (1, "DecisionError")
    assert message in said
    assert "Traceback" not in said
    assert not (tmp_path / "store" / "objects").exists()


def test_a_file_of_decisions_that_is_named_must_exist(run: Run, tmp_path: Path) -> None:
    pins = write_pins(tmp_path, local_tree(tmp_path, run, main_c=CODE))

    code, answer, said = build(run, pins, "--decisions", str(tmp_path / "nowhere.toml"))

    assert (code, answer["error"]) == (1, "DecisionError")
    assert "nowhere.toml: cannot be read" in said


@pytest.mark.slow
def test_a_snapshot_with_decisions_is_proved_again_and_shows_them_everywhere(
    run: Run, tmp_path: Path, tiny_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "store")
    concluded = 'source = "quarry"\npath = "third_party/formula/formula.c"\nlicense = "MIT"'
    released = 'source = "odds"\npath = "markers/gen*.c"\nrelease = ["generated"]'
    waived = 'source = "odds"\npath = "markers/contact.c"\nwaive = "email"\nline = 4'
    unused = 'source = "lantern"\npath = "src/utf8.c"\nlicense = "MIT"'
    decisions = write_decisions(tmp_path, concluded, released, waived, unused)
    tiny = ("--recipe", "tiny", "--decisions", decisions, "--workers", "1")
    before = Store(tmp_path / "store").ref("tiny", "live")

    with known_answers(tiny_store):
        code, answer, said = run("build", *tiny)
        assert (code, "lantern/src/utf8.c has no effect" in said) == (0, True)
        monkeypatch.setattr("pipeline.build.replay.was_made_here", lambda object_id: False)
        assert run("promote", "--corpus", "tiny")[1]["new"] == answer["snapshot_id"] != before
        again = run("build", *tiny)[1]
    assert again["snapshot_id"] == answer["snapshot_id"]
    assert all(stage["unchanged"] for stage in again["stages"][:4])

    words = "decided by A. Reader: The author said so."
    trace = run("why", "quarry", "third_party/formula/formula.c", "--corpus", "tiny")[1]
    assert trace["kept"]
    cleaned = next(step["evidence"] for step in trace["steps"] if step["stage"] == "normalize")
    assert cleaned["license_evidence"] == "decision"
    assert cleaned["decisions"] == [f"license MIT, {words} (applied)"]
    trace = run("why", "odds", "markers/contact.c", "--corpus", "tiny")[1]
    assert f"waiver of email on line 4, {words} (applied)" in str(trace)

    report = run("report", "--corpus", "tiny", "--out", str(tmp_path / "page.html"))[1]
    assert [row["num_files"] for row in report["decisions"]] == [0, 1, 1, 1]
    assert report["decisions"][0]["warning"].startswith("The decision about lantern/src/utf8.c has no effect")
    page = (tmp_path / "page.html").read_text()
    assert 'id="decisions"' in page
    assert "markers/gen*.c" in page
    card = run("card", "--corpus", "tiny")[1]
    assert "## Decisions" in str(card)
    assert "A. Reader" in str(card)

    changes = run("diff", str(before), answer["snapshot_id"])[1]
    settings = {row["name"]: row["b"] for row in changes["settings"]}
    name = "decisions.quarry/third_party/formula/formula.c: license MIT"
    assert settings[name] == "A. Reader: The author said so."
    causes = {row["cause"] for row in changes["causes"]}
    assert {"no longer license_quarantined", "no longer generated", "normalize.decisions"} <= causes
