"""A stage that a program registers is an asset like the others."""

import re

import dagster as dg
import pytest

from assets import jobs
from assets.definitions import definitions
from assets.stage_assets import _named_defect
from pipeline.build.run_stage import BuildCallback
from pipeline.contracts.gates import GATES
from pipeline.core.errors import StageError
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


def test_a_defect_of_a_stages_code_is_told_with_its_stage_and_place_and_a_refusal_as_it_is() -> None:
    found = r"^stage verify of corpus tiny raised KeyError: 'document_id' \(test_stage_assets\.py:\d+\)\. .* Report it "
    with pytest.raises(dg.Failure) as failure, _named_defect("verify", "tiny"):
        raise KeyError("document_id")
    assert re.match(found, failure.value.description or "")
    assert isinstance(failure.value.__cause__, KeyError)

    with pytest.raises(StageError), _named_defect("verify", "tiny"):
        raise StageError("stage verify", "no source came through", "one at least")
