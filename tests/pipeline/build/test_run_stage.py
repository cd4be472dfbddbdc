"""Runs of stages: limits of gates move no part; commands to run next fit a shell and name no file that holds a secret."""

import shlex
import shutil
from pathlib import Path

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY, pins_of
from pipeline.build.run_stage import StageResult, first_files, next_questions, run_stages
from pipeline.stages.normalize.params import DropBands
from pipeline.store.refs import LAST
from pipeline.store.store import Store
from tests.conftest import known_answers


def test_limits_of_gates_move_no_part_and_no_snapshot(
    tiny_store: Store, tiny_results: list[StageResult], tmp_path: Path
) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "store")
    params = TINY.params
    others = params.model_copy(
        update={
            "normalize": params.normalize.model_copy(update={"drop_bands": DropBands(generated=0.4)}),
            "enrich": params.enrich.model_copy(update={"max_degraded_fraction": 0.9}),
            "verify": params.verify.model_copy(update={"min_trained_fraction": 0.1}),
        }
    )
    order = BuildRequest("tiny", others, pins_of(TINY), "a test", offline=True)
    with known_answers(tiny_store), open_build(order, Store(tmp_path / "store")) as build:
        made = list(run_stages(build))

    assert made[-1].snapshot_id == tiny_results[-1].snapshot_id
    assert build.store.moves("tiny", LAST)[-1]["reason"] == "reached verify"
    for before, after in zip(tiny_results, made, strict=True):
        changed = {name for name in before.parts if before.parts[name] != after.parts[name]}
        assert changed <= {"canaries", "smoke", "loader"}
        assert (before.object_id == after.object_id) == (after.stage == "collect")


def test_the_commands_can_be_pasted_into_a_shell() -> None:
    why, report = next_questions(Path("my store"), "mine", "last", [("code", "it's a.c")])

    assert shlex.split(why)[3:] == [
        "why",
        "code",
        "it's a.c",
        *["--corpus", "mine", "--of", "last", "--store"],
        "my store",
    ]
    assert report == "python -m pipeline report --corpus mine --of last --store 'my store'"
    assert "pipeline show --corpus mine --of last" in next_questions(Path("store"), "mine", "last", (), False)[-1]


def test_three_files_are_named_once_each_and_none_whose_name_holds_a_secret() -> None:
    secret = ("one", "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345" + ".c")
    names = [("one", f"{name}.c") for name in "aabcd"]

    assert first_files([secret, *names]) == (names[0], names[2], names[3])
