"""Asset `snapshot/live`: a promotion without a candidate fails in one sentence and moves nothing."""

from pathlib import Path

import dagster as dg

from assets import jobs
from assets.definitions import defs
from pipeline.store.store import Store


def test_without_a_candidate_it_fails_and_says_how_to_make_one(instance: dg.DagsterInstance, root: Path) -> None:
    result = defs.resolve_job_def("promote_tiny").execute_in_process(
        instance=instance, run_config=jobs.promote_config("tiny"), raise_on_error=False
    )
    (failure,) = (event.event_specific_data for event in result.all_events if event.is_step_failure)

    assert "MissingError: snapshot candidate of corpus tiny" in str(failure)
    assert "Run `python -m pipeline build` first." in str(failure)
    assert Store(root).refs("tiny") == {}
