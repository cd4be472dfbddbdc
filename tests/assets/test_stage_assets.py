"""A stage that a program registers is an asset like the others."""

import dagster as dg

from assets import jobs
from assets.definitions import definitions
from pipeline.build.run_stage import BuildCallback
from pipeline.contracts.gates import GATES
from pipeline.pins.corpora import Corpus
from pipeline.stages.stages import STAGES, stage_before
from tests.support.shorten_stage import FEW_ARE_LONG, NO_ROW_LOST, SHORTEN

MINE = Corpus(name="mine", recipe="tiny")


def test_a_registered_stage_is_an_asset_with_its_check_in_the_jobs_and_their_launchpads() -> None:
    with STAGES.registered(SHORTEN, before="enrich"), GATES.registered(FEW_ARE_LONG), GATES.registered(NO_ROW_LOST):
        before = stage_before("shorten") or ""
        extended = definitions(BuildCallback(), [MINE])
        config = jobs.build_config(MINE, overrides={"shorten": {"max_num_bytes": 100}})
    graph = extended.resolve_asset_graph()

    assert graph.get(dg.AssetKey(["mine", "shorten"])).parent_keys == {dg.AssetKey(["mine", before])}
    assert graph.get(dg.AssetKey(["mine", "enrich"])).parent_keys == {dg.AssetKey(["mine", "shorten"])}
    assert dg.AssetCheckKey(dg.AssetKey(["mine", "shorten"]), FEW_ARE_LONG.name) in graph.asset_check_keys
    job = extended.resolve_job_def("build")
    assert dg.AssetKey(["mine", "shorten"]) in job.asset_layer.executable_asset_keys
    assert dg.validate_run_config(job, config)
