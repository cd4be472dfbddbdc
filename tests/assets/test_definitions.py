"""The graph in the UI: keys, dependencies, jobs and cron lines of each corpus."""

import re
import subprocess
import sys

import dagster as dg
import pytest

from assets.definitions import defs
from assets.resources import declared_corpora
from pipeline.stages.stages import STAGES
from tests.support.paths import ROOT

CORPORA = [corpus.name for corpus in declared_corpora()]
MAX_CALLS = 1_600_000
"""A quarter more than they made when the figure `definitions` held its two seconds of processor."""


def test_every_asset_depends_on_the_stage_before_in_its_corpus() -> None:
    graph = defs.resolve_asset_graph()
    found = {
        key.to_user_string(): sorted(parent.to_user_string() for parent in graph.get(key).parent_keys)
        for key in graph.get_all_asset_keys()
    }
    expected = {}
    for corpus in CORPORA:
        in_order = [f"{corpus}/{name}" for name in (*STAGES.names, "live", "training")]
        expected |= {name: [before] if before else [] for before, name in zip(["", *in_order], in_order, strict=False)}

    assert found == expected


@pytest.mark.parametrize(("corpus", "suffix"), [("quick", ""), ("tiny", "_tiny")])
def test_each_job_makes_the_assets_of_its_corpus(corpus: str, suffix: str) -> None:
    stages = set(STAGES.names)
    expected = {"build": stages, "nightly": stages | {"live"}, "promote": {"live"}, "train": {"training"}}
    found = {name: defs.resolve_job_def(name + suffix).asset_layer.executable_asset_keys for name in expected}

    assert {name: {key.to_user_string() for key in keys} for name, keys in found.items()} == {
        name: {f"{corpus}/{each}" for each in assets} for name, assets in expected.items()
    }


def test_nightly_is_scheduled_for_the_corpora_that_say_when() -> None:
    schedules = [item for item in defs.schedules or [] if isinstance(item, dg.ScheduleDefinition)]

    assert [(item.name, item.cron_schedule, item.default_status.value) for item in schedules] == [
        ("nightly", "0 3 * * *", "RUNNING")
    ]


def test_stages_and_trainings_are_in_pools_that_a_team_bounds() -> None:
    pools = {key.to_user_string(): each.op.pool for each in defs.assets or [] for key in each.keys}  # type: ignore[union-attr]

    assert pools == {
        f"{corpus}/{name}": {"live": None, "training": "train"}.get(name, "build")
        for corpus in CORPORA
        for name in (*STAGES.names, "live", "training")
    }


def test_policy_is_on_every_asset() -> None:
    specs = list(defs.resolve_all_asset_specs())

    assert len(specs) == len(CORPORA) * (len(STAGES) + 2)
    assert all(spec.owners == ["team:data"] and spec.kinds and spec.group_name and spec.description for spec in specs)


def test_commands_in_descriptions_name_their_corpus() -> None:
    texts = {spec.key.to_user_string(): spec.description or "" for spec in defs.resolve_all_asset_specs()}
    named = {key: re.findall(r"`(python -m [^`]*)`", text) for key, text in texts.items()}

    assert {key.partition("/")[2] for key, commands in named.items() if commands} >= {"normalize", "live", "training"}
    for key, commands in named.items():
        assert all(f"--corpus {key.partition('/')[0]}" in command for command in commands), (key, commands)


def test_the_launchpad_of_each_job_opens_with_the_fields_that_matter_and_none_of_a_stage() -> None:
    for name in ("build", "nightly", "promote", "train", "build_tiny"):
        job = defs.resolve_job_def(name)
        assert job.run_config, name
        assert dg.validate_run_config(job, job.run_config)
    build = defs.resolve_job_def("build").run_config or {}
    train = defs.resolve_job_def("train").run_config or {}

    offered = {
        name: defs.resolve_job_def(name).run_config_schema.config_type for name in ("build", "train", "build_tiny")
    }
    builds = {
        name: [key for key in kind.fields["resources"].config_type.fields if key.startswith("build_")]
        for name, kind in offered.items()
    }
    assert builds == {"build": ["build_quick"], "train": [], "build_tiny": ["build_tiny"]}, (
        "no form asks for another corpus"
    )
    assert list(build["resources"]["build_quick"]["config"]) == ["recipe", "pins", "decisions", "workers", "offline"]
    assert "ops" not in build
    assert list(train["ops"]["quick__training"]["config"]) == ["recipe", "stop_after", "save_every", "device", "seed"]


@pytest.mark.parametrize(
    ("job", "config"),
    [
        ("build", {"resources": {"build_quick": {"config": {"recipe": "qiuck"}}}}),
        ("train", {"ops": {"quick__training": {"config": {"recipe": "tyni"}}}}),
        ("train", {"ops": {"quick__training": {"config": {"device": "gpu"}}}}),
        ("build", {"resources": {"build_quick": {"config": {"corpus": "other"}}}}),
    ],
)
def test_a_name_that_is_none_is_refused_before_a_run_starts(job: str, config: dict[str, object]) -> None:
    with pytest.raises(dg.DagsterInvalidConfigError):
        dg.validate_run_config(defs.resolve_job_def(job), config)


def test_definitions_load_with_no_more_calls_than_two_seconds_hold() -> None:
    program = (
        "from tests.support.counted_calls import count_calls\n"
        "def load():\n"
        "    from assets.definitions import defs\n"
        "    defs.get_repository_def()\n"
        "print(count_calls(load))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True)

    assert int(done.stdout) < MAX_CALLS
