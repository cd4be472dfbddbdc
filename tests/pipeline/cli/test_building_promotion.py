"""A promotion by command moves live, needs a reason for other limits, and says which candidate it judges."""

import json
import shutil
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.contracts.gates import GATES
from pipeline.pins.local_tree import tree_digest
from pipeline.pins.selection import Selection
from pipeline.stages.tokenize.vocabulary import TrainedOn, write_vocabulary
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from tests.conftest import known_answers
from tests.pipeline.cli.conftest import Run
from tests.pipeline.cli.own_builds import write_decisions
from tests.support.paths import MADE_CORPUS


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
