"""A stage that a program registers is an asset like the others."""

import dagster as dg

from assets import jobs
from assets.definitions import definitions
from pipeline.build.recipes import TINY
from pipeline.build.run_stage import BuildCallback
from pipeline.contracts.gates import GATES
from pipeline.stages.stages import STAGES
from tests.support.shorten_stage import FEW_ARE_LONG, NO_ROW_LOST, SHORTEN


def test_a_registered_stage_is_an_asset_with_its_check_in_the_jobs_and_their_launchpads() -> None:
    with STAGES.registered(SHORTEN, before="enrich"), GATES.registered(FEW_ARE_LONG), GATES.registered(NO_ROW_LOST):
        extended = definitions(BuildCallback())
        config = jobs.build_config(TINY)
    graph = extended.resolve_asset_graph()

    assert graph.get(dg.AssetKey("shorten")).parent_keys == {dg.AssetKey("normalize")}
    assert graph.get(dg.AssetKey("enrich")).parent_keys == {dg.AssetKey("shorten")}
    assert dg.AssetCheckKey(dg.AssetKey("shorten"), FEW_ARE_LONG.name) in graph.asset_check_keys
    job = extended.resolve_job_def("build")
    assert dg.AssetKey("shorten") in job.asset_layer.executable_asset_keys
    assert config["ops"]["shorten"]["config"] == {"max_num_bytes": 2_000, "max_num_long": 1_000}
    assert dg.validate_run_config(job, config)
