"""Runs of stages: limits of gates move no part and no snapshot."""

import shutil
from pathlib import Path

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY, pins_of
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.stages.normalize.params import DropBands
from pipeline.store.store import Store


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
    with open_build(order, Store(tmp_path / "store")) as build:
        made = list(run_stages(build))

    assert made[-1].snapshot_id == tiny_results[-1].snapshot_id
    for before, after in zip(tiny_results, made, strict=True):
        changed = {name for name in before.parts if before.parts[name] != after.parts[name]}
        assert changed <= {"canaries", "smoke", "loader"}
        assert (before.object_id == after.object_id) == (after.stage == "collect")
