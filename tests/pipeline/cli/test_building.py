"""A build prints its stages and its snapshot, takes items of one's own, and waits for another build of its corpus."""

import argparse
import json
import os
from contextlib import redirect_stdout
from pathlib import Path

from pipeline.build.run_stage import StageResult
from pipeline.cli.building import add_build_arguments
from pipeline.cli.main import main
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store
from tests.conftest import copy_consumer_proof, known_answers
from tests.pipeline.cli.conftest import Run
from tests.pipeline.cli.own_builds import CODE, build, local_tree, write_pins


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


def test_until_stops_after_the_stage(run: Run) -> None:
    code, answer, _ = run("build", "--recipe", "tiny", "--workers", "1", "--until", "normalize")

    assert code == 0
    assert [stage["name"] for stage in answer["stages"]] == list(STAGES.names[: STAGES.names.index("normalize") + 1])
    assert answer["snapshot_id"] is None


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
