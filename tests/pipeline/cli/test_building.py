"""A build prints its stages, and one line about a mistake with what to do."""

import argparse
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import tarfile
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from pipeline.build.run_stage import StageResult
from pipeline.cli.building import add_build_arguments
from pipeline.cli.main import main
from pipeline.contracts.gates import GATES
from pipeline.core.registry import Registry
from pipeline.pins.local_tree import tree_digest
from pipeline.pins.selection import Selection
from pipeline.stages.stages import STAGES
from pipeline.stages.tokenize.vocabulary import TrainedOn, write_vocabulary
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from tests.conftest import copy_consumer_proof, known_answers
from tests.support.paths import MADE_CORPUS

Run = Callable[..., tuple[int, Any, str]]
CODE = (
    "// SPDX-License-"
    + "Identifier: MIT\n"
    + "".join(f"int f{n}(int a{n}) {{ return a{n} * {n} + {n}; }}\n" for n in range(200))
)


def write_pins(folder: Path, *entries: str) -> str:
    path = folder / "pins.toml"
    path.write_text("\n".join(f"[[pin]]\n{entry}" for entry in entries))
    return str(path)


def local_tree(folder: Path, run: Run, **files: str) -> str:
    for name, content in files.items():
        (folder / "code").mkdir(exist_ok=True)
        (folder / "code" / name.replace("_c", ".c")).write_text(content)
    _, entry, _ = run("pin", "mine", str(folder / "code"), "--license", "MIT")
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in entry.items())


def build(run: Run, pins: str, *more: str) -> tuple[int, Any, str]:
    return run("build", "--recipe", "tiny", "--corpus", "mine", "--pins", pins, "--workers", "1", *more)


def test_build_prints_its_stages_and_the_snapshot(
    run: Run, tiny_results: list[StageResult], tiny_store: Store, tmp_path: Path
) -> None:
    copy_consumer_proof(tiny_store, tmp_path / "store")
    code, answer, _ = run("build", "--recipe", "tiny", "--workers", "2", "--promote")

    assert code == 0
    assert answer["snapshot_id"] == tiny_results[-1].snapshot_id
    assert answer["promoted"] is True
    assert [stage["name"] for stage in answer["stages"]] == list(STAGES.names)
    for stage in answer["stages"]:
        assert stage["rows_in"] == stage["rows_out"] + sum(stage["dropped"].values())
        assert stage["seconds"] >= 0
        assert stage["unchanged"] is False


def test_a_folder_of_ones_own_is_pinned_built_and_promoted(run: Run, tmp_path: Path) -> None:
    pins = write_pins(tmp_path, local_tree(tmp_path, run, main_c=CODE))
    code, answer, _ = build(run, pins, "--until", "tokenize")

    assert code == 0
    assert answer["stages"][-1]["rows_out"] == 1


def test_documents_that_hold_a_given_evaluation_item_are_dropped(run: Run, tmp_path: Path) -> None:
    pins = write_pins(
        tmp_path, local_tree(tmp_path, run, main_c=CODE, other_c=CODE.replace("int f", "long g") + "int more;\n")
    )
    (tmp_path / "items").mkdir()
    item = {"id": "mine/1", "prompt": "Write it.", "solution": "\n".join(CODE.splitlines()[1:20])}
    (tmp_path / "items" / "mine.jsonl").write_text(json.dumps(item))
    for more, dropped in [((), {}), (("--evaluation-items", str(tmp_path / "items")), {"contaminated": 1})]:
        code, answer, _ = build(run, pins, "--until", "normalize", *more)
        assert (code, answer["stages"][-1]["dropped"].get("contaminated", 0)) == (0, sum(dropped.values()))
    code, answer, _ = build(run, pins, "--evaluation-items", str(tmp_path / "nowhere"))
    assert (code, answer["error"]) == (1, "ParamsError")


RESULT = {"recipe", "set", "pins", "decisions", "evaluation_items"}
NO_RESULT = {"corpus", "workers", "engine", "address", "offline", "wait", "no_report", "promote", "until"}
"""Options of a build that change the snapshot, and those that do not. With another `--until` there is none."""


def test_every_option_of_a_build_is_known_to_change_its_result_or_not() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    add_build_arguments(parser)
    assert {action.dest for action in parser._actions} == RESULT | NO_RESULT


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    """Options with which a build has another result: fields, items, decisions, a vocabulary, and all that pins may say."""
    pins = (MADE_CORPUS.read_text()).replace('path = "', f'path = "{MADE_CORPUS.parent}/')
    odds = """weight = 2.5
exclude = ["shapes/**"]
upstreams = { "duplicates/**" = "lantern" }
languages = { c = [0.0, 1.0], cpp = [0.0, 1.0] }
"""
    root = MADE_CORPUS.parent / "odds"
    pins = pins.replace(tree_digest(root), tree_digest(root, Selection((), ("shapes/**",))))
    (tmp_path / "pins.toml").write_text(pins.replace('name = "odds"\n', f'name = "odds"\n{odds}'))
    (tmp_path / "items").mkdir()
    solution = (MADE_CORPUS.parent / "lantern" / "src" / "calendar.c").read_text()
    (tmp_path / "items" / "mine.jsonl").write_text(json.dumps({"id": "a/1", "prompt": "Write.", "solution": solution}))
    (tmp_path / "decided").mkdir()
    concluded = 'source = "quarry"\npath = "third_party/formula/formula.c"\nlicense = "MIT"'
    waived = 'source = "odds"\npath = "markers/contact.c"\nwaive = "email"\nline = 4'
    decisions = write_decisions(tmp_path / "decided", concluded, waived)
    texts = [path.read_text() for path in sorted((MADE_CORPUS.parent / "lantern").rglob("*.c"))]
    write_vocabulary(tmp_path / "own-400", "own-400", texts, 400, TrainedOn("mine", "0" * 64))
    options = ["--pins", str(tmp_path / "pins.toml"), "--evaluation-items", str(tmp_path / "items")]
    options += ["--set", "tokenize.row_length=64", "--set", f"tokenize.vocabulary={tmp_path}/own-400"]
    return [*options, "--decisions", decisions, "--corpus", "mine"]


def test_what_was_built_with_any_option_is_promoted_by_another_process_without_them(
    run: Run, given: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, answer, said = run("build", "--recipe", "tiny", "--workers", "1", *given)
    assert code == 0, said
    assert answer["stages"][1]["dropped"]["contaminated"] >= 1
    monkeypatch.setattr("pipeline.build.stage_objects._MADE", set())  # as in another process
    for folder in ("items", "decided", "own-400"):
        shutil.rmtree(tmp_path / folder)

    code, promoted, said = run("promote", "--corpus", "mine")
    assert code == 0, said
    assert promoted["new"] == answer["snapshot_id"]
    snapshot = open_snapshot(Store(tmp_path / "store"), answer["snapshot_id"])
    assert (snapshot.vocabulary["name"], snapshot.vocabulary["size"]) == ("own-400", 400)
    assert str(tmp_path).encode() not in snapshot.stored.file("snapshot.json").read_bytes()


def test_until_stops_after_the_stage(run: Run) -> None:
    code, answer, _ = run("build", "--recipe", "tiny", "--workers", "1", "--until", "normalize")

    assert code == 0
    assert [stage["name"] for stage in answer["stages"]] == list(STAGES.names[: STAGES.names.index("normalize") + 1])
    assert answer["snapshot_id"] is None


def test_promotion_without_a_build_says_what_to_run(run: Run) -> None:
    code, answer, text = run("promote", "--corpus", "tiny")

    assert code == 1
    assert "python -m pipeline build" in answer["message"]
    assert "Traceback" not in text


def test_rolling_back_is_the_same_move(run: Run, tiny_store: Store, tmp_path: Path) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "store")
    with known_answers(tiny_store):
        _, first, _ = run("build", "--recipe", "tiny", "--workers", "1", "--promote")
    code, answer, text = run("promote", "--corpus", "tiny", "--to", first["snapshot_id"], "--reason", "a test")

    assert code == 0
    assert answer["unchanged"] is True
    assert [row["gate"] for row in answer["seen_red"]] == list(GATES.names)
    assert "Gates last seen red in build" in text


def test_limits_that_a_build_had_otherwise_than_its_recipe_need_a_reason_in_a_corpus_that_nothing_declares(
    run: Run, tiny_store: Store, tmp_path: Path
) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "store")
    limit = "normalize.drop_bands.license_refused"
    line = ("--recipe", "tiny", "--corpus", "trial", "--workers", "1", "--set", f"{limit}=0.99")
    with known_answers(tiny_store):
        code, _, said = run("build", *line, "--promote")
        assert (code, f"{limit} is 0.99, the recipe's is " in said) == (1, True), said
        code, _, said = run("promote", "--corpus", "trial")
        assert (code, f"{limit} is 0.99, the recipe's is " in said) == (1, True), said
        code, answer, said = run("build", *line, "--promote", "--reason", "a trial")
    assert (code, answer["promoted"]) == (0, True), said
    last = Store(tmp_path / "store").history("trial")[-1]
    assert last["reason"] == "a trial"
    assert "license_refused is 0.99" in last["other_limits"]
    assert run("build", *line, "--reason", "a trial")[0] == 2


LOOSENED = ("--set", "normalize.drop_bands.license_refused=0.99")


def test_a_build_by_other_limits_of_what_is_live_by_those_of_the_recipe_is_promoted_for_a_reason_alone_which_is_kept_once(
    run: Run, tiny_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "store")
    store = Store(tmp_path / "store")
    before = store.moves("tiny", "live")
    with known_answers(tiny_store):
        code, answer, said = run("build", "--recipe", "tiny", "--workers", "1", *LOOSENED, "--promote")
    assert (code, answer["error"], "license_refused is 0.99, the recipe's is" in said) == (1, "ParamsError", True)
    assert store.moves("tiny", "live") == before

    promote = ["promote", "--corpus", "tiny", "--reason", "it was loosened", "--store", str(store.root)]
    for kept in ("the history keeps the reason", "the reason is not kept"):
        capsys.readouterr()
        assert main(promote) == 0
        printed = capsys.readouterr()
        assert kept in printed.out
        assert "not the recipe's limit: normalize.drop_bands.license_refused is 0.99" in printed.err
    assert [entry["reason"] for entry in store.moves("tiny", "live")] == [before[-1]["reason"], "it was loosened"]
    assert main(["show", "--corpus", "tiny", "--store", str(store.root)]) == 0
    assert "it was loosened" in capsys.readouterr().out


def test_a_promotion_after_a_blocked_build_says_so_and_which_candidate_it_judges(
    run: Run, tiny_store: Store, tmp_path: Path
) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "store")
    candidate = Store(tmp_path / "store").ref("tiny", "candidate") or ""
    line = ("--workers", "1", "--set", "normalize.drop_bands.license_refused=0.001")
    assert run("build", "--recipe", "tiny", *line)[0] == 1
    for to in ("candidate", candidate):
        code, answer, said = run("promote", "--corpus", "tiny", "--to", to)
        assert (code, answer["new"]) == (0, candidate)
        is_told = "the last build of corpus tiny was blocked: normalize, drops_are_in_their_bands" in said
        assert is_told == (to == "candidate"), said
        assert (f"build before it: {candidate[:12]}" in said) == is_told


def test_an_empty_name_of_a_corpus_is_refused(run: Run, tmp_path: Path) -> None:
    code, answer, _ = run("build", "--recipe", "tiny", "--corpus", "")

    assert (code, answer["error"]) == (1, "ParamsError")
    assert "corpus '': it is not a valid name" in answer["message"]
    assert not (tmp_path / "store").exists()


def test_an_unknown_recipe_names_those_that_exist(run: Run) -> None:
    code, answer, _ = run("build", "--recipe", "huge")

    assert code == 1
    assert "tiny, quick, full" in answer["message"]


def test_offline_with_an_empty_store_names_every_missing_archive(run: Run) -> None:
    code, answer, _ = run("build", "--recipe", "quick", "--offline", "--workers", "1")

    assert code == 1
    for name in (
        "awkward_cpp-57.tar.gz",
        "ducc0-0.42.0.tar.gz",
        "iminuit-2.33.0.tar.gz",
        "python_rapidjson-1.25.tar.gz",
    ):
        assert name in answer["message"]
    assert "every_pin_verified BLOCKED: num_failed_sources is 4, must be at most 0" in answer["message"]


def test_a_wrong_digest_shows_both_and_the_other_source_is_collected(run: Run, tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "other.tar", "project/a.c", CODE.encode())
    wrong = f'name = "other"\nkind = "archive"\npath = "{archive}"\nsha256 = "{"1" * 64}"\ndeclared_license = "MIT"'
    code, answer, _ = build(run, write_pins(tmp_path, local_tree(tmp_path, run, main_c=CODE), wrong))
    found = hashlib.sha256(archive.read_bytes()).hexdigest()

    assert code == 1
    assert "1" * 64 in answer["message"]
    assert found in answer["message"]
    assert Store(tmp_path / "store").refs("mine") == {"last": answer["id"]}
    assert list((tmp_path / "store" / "objects" / "collect" / "part").iterdir())

    assert list(run("show", "last", "--corpus", "mine")[1]["failures"]) == ["other"]
    code, answer, _ = run("why", "other", "a.c", "--corpus", "mine", "--of", "last")
    assert code == 1
    assert "source other: it failed in this build: its bytes have sha256" in answer["message"]
    assert found in answer["message"]


def test_a_blocked_build_names_the_rule_some_files_and_what_to_run_next(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long_line = f"int b = {' + '.join(map(str, range(900)))};\n"
    files = {f"{name}_c": f"int {name};\n{long_line}" for name in "abcde"}
    code, answer, _ = build(run, write_pins(tmp_path, local_tree(tmp_path, run, **files)))

    assert (code, answer["error"]) == (1, "BlockedError")
    assert "documents_are_kept BLOCKED: rows_out is 0, must be at least 1" in answer["message"]
    assert [verdict["outcome"] for verdict in answer["verdicts"]] == ["failed"] * len(answer["verdicts"])
    assert answer["id"][:12] in answer["message"]
    assert len(re.findall(r"mine/[a-e]\.c", answer["message"])) == 3
    *files_asked, report = [shlex.split(command)[3:-2] for command in answer["next"]]
    for command in files_asked:
        code, found, said = run(*command)
        assert (code, found["steps"][-1]["reason"]) == (0, "long_line")
        assert found["build"]["id"] == answer["id"]
        assert "build last of corpus mine was blocked: normalize" in said
    assert run(*report)[1]["rules"][0]["reason"] == "long_line"
    arguments = ["build", "--recipe", "tiny", "--corpus", "mine", "--pins", str(tmp_path / "pins.toml")]
    assert main([*arguments, "--store", str(tmp_path / "store"), "--quiet"]) == 1
    said = capsys.readouterr()
    assert "Blocked at normalize" in Path(said.out.splitlines()[-1].removeprefix("the report is ")).read_text()
    assert said.err.startswith("error BlockedError: "), "--quiet leaves the error alone"


def test_a_build_that_keeps_nothing_inside_its_bands_names_files_too(run: Run, tmp_path: Path) -> None:
    pins = write_pins(tmp_path, local_tree(tmp_path, run, a_c="int a;\n", b_c="int b;\n"))
    wide = ("--set", "normalize.drop_bands.too_small=1.0", "--set", "normalize.filters.min_num_bytes=690")
    code, answer, _ = build(run, pins, *wide)

    assert [each["gate"] for each in answer["verdicts"]] == ["documents_are_kept"]
    assert "No document is kept: most were dropped as too_small. Dropped: 2 as too_small." in answer["message"]
    assert (code, [shlex.split(each)[3] for each in answer["next"]]) == (1, ["why", "why", "report"])


def test_a_build_blocked_by_what_was_replaced_names_the_files_and_what_stands_for_it(run: Run, tmp_path: Path) -> None:
    comment = "/* {0}: write to someone.{0}@corporation.org or to other.{0}@corporation.org about it */\n"
    files = {f"{name}_c": CODE.replace("int f", f"int {name}") + comment.format(name) for name in "abcd"}
    pins = write_pins(tmp_path, local_tree(tmp_path, run, **files))
    code, answer, _ = build(run, pins, "--set", "normalize.max_redacted_fraction=0.001")

    assert code == 1, answer
    assert [verdict["gate"] for verdict in answer["verdicts"]] == ["redactions_are_few"]
    assert "bytes, most in a.c (48 bytes: 2 of email), b.c" in answer["message"]
    assert "mine/a.c, mine/b.c, mine/c.c" in answer["message"]
    found = run(*shlex.split(answer["next"][0])[3:-2])[1]["steps"]
    normalized = next(step["evidence"] for step in found if step["stage"] == "normalize")
    assert normalized["placeholders"] == ["<redacted-email-1>", "<redacted-email-2>"]


def test_a_pin_that_is_a_branch_is_refused_with_the_fix(run: Run, tmp_path: Path) -> None:
    pins = write_pins(tmp_path, 'name = "mine"\nkind = "git"\nurl = "https://forge.test/mine.git"\ncommit = "main"')
    code, answer, _ = build(run, pins)

    assert code == 1
    assert "mine" in answer["message"]
    assert "main" in answer["message"]
    assert "40" in answer["message"]


@pytest.mark.parametrize(
    ("member", "word"),
    [("project/../../x.c", ".."), ("/etc/x.c", "/etc/x.c"), ("C:/x.c", "C:")],
    ids=["climbs", "absolute", "drive"],
)
def test_a_hostile_archive_is_refused_by_its_member(run: Run, tmp_path: Path, member: str, word: str) -> None:
    archive = make_archive(tmp_path / "hostile.tar", member, b"int x;\n")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    entry = f'name = "hostile"\nkind = "archive"\npath = "{archive}"\nsha256 = "{digest}"\ndeclared_license = "MIT"'
    code, answer, _ = build(run, write_pins(tmp_path, entry))

    assert code == 1
    assert "hostile" in answer["message"]
    assert word in answer["message"]


def test_a_missing_pins_file_is_one_line(run: Run, tmp_path: Path) -> None:
    code, answer, text = build(run, str(tmp_path / "nowhere.toml"))

    assert code == 1
    assert "nowhere.toml" in answer["message"]
    assert "Traceback" not in text


def test_a_gate_that_crashes_fails_loudly_and_moves_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from pipeline.contracts import gates

    broken = replace(GATES["documents_are_kept"], measure="no_such_measure")
    others = [gate for gate in GATES if gate.name != broken.name]
    monkeypatch.setattr(gates, "GATES", Registry("gate", *others, broken))
    code, answer, _ = run("build", "--recipe", "tiny", "--workers", "1")

    assert code == 1
    assert answer["error"] == "MeasureError"
    assert "documents_are_kept" in answer["message"]
    assert set(Store(tmp_path / "store").refs("tiny")) == {"collect", "last"}


def test_a_second_build_of_the_corpus_waits_and_says_for_whom(run: Run, tmp_path: Path) -> None:
    with Store(tmp_path / "store").writer("tiny", "`build` (process 1)"):
        code, answer, text = run("build", "--recipe", "tiny", "--workers", "1", "--wait", "0.3")

    assert code == 1
    assert "being written by `build` (process 1)" in answer["message"]
    assert "waiting for `build` (process 1)" in text


def test_two_builds_at_once_end_in_one_snapshot(
    tmp_path: Path, tiny_results: list[StageResult], tiny_store: Store
) -> None:
    line = ["build", "--recipe", "tiny", "--workers", "1", "--json", "--store", str(tmp_path / "store")]
    answers = [tmp_path / "first.json", tmp_path / "second.json"]
    with known_answers(tiny_store):
        children = [forked(line, answer) for answer in answers]

    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert {json.loads(each.read_text())["snapshot_id"] for each in answers} == {tiny_results[-1].snapshot_id}


def forked(line: list[str], answer: Path) -> int:
    """Begin a command in a process forked from this one, which has loaded the libraries already; its number."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with answer.open("w") as out, redirect_stdout(out):
                code = main(line)
        finally:
            os._exit(code)
    return child


def make_archive(path: Path, member: str, content: bytes) -> Path:
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo(member)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return path


def write_decisions(folder: Path, *entries: str) -> str:
    path = folder / "decisions.toml"
    who = 'person = "A. Reader"\nreason = "The author said so."\n'
    path.write_text("\n".join(f"[[decision]]\n{entry}\n{who}" for entry in entries))
    return str(path)


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
