"""The graph in the UI: keys, dependencies, checks, jobs and cron lines, as one committed text."""

from pathlib import Path

import dagster as dg

from assets import jobs
from assets.definitions import definitions, defs
from pipeline.build.recipes import TINY
from pipeline.build.run_stage import BuildCallback
from pipeline.build.stages import STAGES
from pipeline.contracts.gates import GATES
from tests.support.shorten_stage import FEW_ARE_LONG, SHORTEN

GRAPH = Path(__file__).parent / "graph.txt"


def describe() -> str:
    graph = defs.resolve_asset_graph()
    lines = []
    for key in sorted(graph.get_all_asset_keys()):
        before = ", ".join(sorted(parent.to_user_string() for parent in graph.get(key).parent_keys))
        lines.append(f"asset {key.to_user_string()} <- {before or 'pins'}")
    for name in ("build", "nightly", "promote", "train"):
        keys = defs.resolve_job_def(name).asset_layer.executable_asset_keys
        lines.append(f"job {name}: {', '.join(sorted(key.to_user_string() for key in keys))}")
    schedules = [item for item in defs.schedules or [] if isinstance(item, dg.ScheduleDefinition)]
    lines += [f"schedule {item.name}: {item.cron_schedule} {item.default_status.value}" for item in schedules]
    return "\n".join(lines) + "\n"


def test_the_graph_is_the_committed_one() -> None:
    assert describe() == GRAPH.read_text()


def test_every_gate_rides_on_its_stage_as_a_check() -> None:
    graph = defs.resolve_asset_graph()
    found = {(key.asset_key.to_user_string(), key.name) for key in graph.asset_check_keys}

    assert found == {(gate.stage, gate.name) for gate in GATES}


def test_a_blocking_gate_is_a_blocking_check() -> None:
    graph = defs.resolve_asset_graph()
    blocking = {key.name for key in graph.asset_check_keys if graph.get_check_spec(key).blocking}

    assert blocking == {gate.name for gate in GATES if gate.blocking}


def test_a_registered_stage_is_an_asset_with_its_check_in_the_jobs_and_their_launchpads() -> None:
    with STAGES.registered(SHORTEN, before="enrich"), GATES.registered(FEW_ARE_LONG):
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


def test_policy_is_on_every_asset() -> None:
    specs = list(defs.resolve_all_asset_specs())

    assert len(specs) == 7
    assert all(spec.owners == ["team:data"] and spec.kinds and spec.group_name and spec.description for spec in specs)


def test_the_launchpad_of_each_job_opens_filled() -> None:
    for name in ("build", "nightly", "promote", "train"):
        job = defs.resolve_job_def(name)
        assert job.run_config, name
        assert dg.validate_run_config(job, job.run_config)
