"""The graph in the UI: keys, dependencies, jobs and cron lines."""

import dagster as dg

from assets.definitions import defs
from pipeline.stages.stages import STAGES


def test_every_asset_depends_on_the_stage_before() -> None:
    graph = defs.resolve_asset_graph()
    found = {
        key.to_user_string(): sorted(parent.to_user_string() for parent in graph.get(key).parent_keys)
        for key in graph.get_all_asset_keys()
    }
    in_order = [*STAGES.names, "snapshot/live", "training"]

    assert found == {name: [before] if before else [] for before, name in zip(["", *in_order], in_order, strict=False)}


def test_each_job_makes_its_assets() -> None:
    stages = set(STAGES.names)
    expected = {
        "build": stages,
        "nightly": stages | {"snapshot/live"},
        "promote": {"snapshot/live"},
        "train": {"training"},
    }
    found = {name: defs.resolve_job_def(name).asset_layer.executable_asset_keys for name in expected}

    assert {name: {key.to_user_string() for key in keys} for name, keys in found.items()} == expected


def test_nightly_is_scheduled_and_runs() -> None:
    schedules = [item for item in defs.schedules or [] if isinstance(item, dg.ScheduleDefinition)]

    assert [(item.name, item.cron_schedule, item.default_status.value) for item in schedules] == [
        ("nightly", "0 3 * * *", "RUNNING")
    ]


def test_policy_is_on_every_asset() -> None:
    specs = list(defs.resolve_all_asset_specs())

    assert len(specs) == len(STAGES) + 2
    assert all(spec.owners == ["team:data"] and spec.kinds and spec.group_name and spec.description for spec in specs)


def test_the_launchpad_of_each_job_opens_filled() -> None:
    for name in ("build", "nightly", "promote", "train"):
        job = defs.resolve_job_def(name)
        assert job.run_config, name
        assert dg.validate_run_config(job, job.run_config)
