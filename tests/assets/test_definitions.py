"""The graph in the UI: keys, dependencies, checks, jobs and cron lines, as one committed text."""

from pathlib import Path

import dagster as dg

from assets.definitions import defs

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


def test_policy_is_on_every_asset() -> None:
    specs = list(defs.resolve_all_asset_specs())

    assert len(specs) == 7
    assert all(spec.owners == ["team:data"] and spec.kinds and spec.group_name and spec.description for spec in specs)


def test_the_launchpad_of_each_job_opens_filled() -> None:
    for name in ("build", "nightly", "promote", "train"):
        job = defs.resolve_job_def(name)
        assert job.run_config, name
        assert dg.validate_run_config(job, job.run_config)
