"""The plan of a cluster: its numbers are those of the slopes, its limits the first ones, and what is missing is a sentence."""

import json
from pathlib import Path

import pytest

from pipeline.stages.stages import STAGES
from tests.benchmarks.cluster.cluster_plan import Cluster, plan, plan_limits, plan_text, print_plan, read_slopes

SLOPES = {
    "slopes/document-bytes": 10_000.0,
    "slopes/shard-fill": 0.5,
    "slopes/unchanged": 0.01,
    "slopes/listed": 80.0,
    "requests": 10.0,
    "sharded-duplicates": 200.0,
    **{f"slopes/{stage}/{name}": 1.0 for stage in STAGES.names for name in ("seconds", "objects", "files", "stored")},
}


def _written(path: Path, slopes: dict[str, float]) -> Path:
    path.write_text("".join(json.dumps({"name": name, "value": value}) + "\n" for name, value in slopes.items()))
    return path


def test_each_number_follows_from_a_slope() -> None:
    cluster = Cluster(terabytes=1.0, workers=100, shard_bytes=2_000_000)
    collect, *_ = plan(SLOPES, cluster)

    assert collect.objects == collect.files == 1e12 / 1e6
    assert collect.requests == 10 * collect.objects
    assert collect.num_bytes == 1e12
    assert collect.worker_seconds == pytest.approx(1e6 + 2e12 / 1e8)
    assert collect.seconds == max(collect.worker_seconds / 100, 1e7 / 3_500, 0.01 * 1e6)


def test_what_grows_with_bytes_is_ten_times_as_much_of_ten_times_and_larger_shards_are_fewer() -> None:
    small, large = (plan(SLOPES, Cluster(terabytes=size))[0] for size in (1.0, 10.0))
    assert large.objects == pytest.approx(10 * small.objects)
    assert large.worker_seconds == pytest.approx(10 * small.worker_seconds)
    halved = plan(SLOPES, Cluster(terabytes=1.0, shard_bytes=2 * Cluster().shard_bytes))[0]
    assert halved.objects == pytest.approx(small.objects / 2)


def test_a_limit_is_where_its_resource_is_used_up_and_a_larger_resource_moves_it() -> None:
    def limits(**options: float) -> dict[str, float]:
        return {each.what.partition(", ")[0]: each.terabytes for each in plan_limits(SLOPES, Cluster(**options))}  # type: ignore[arg-type]

    before, after = limits(), limits(memory_gibibytes=512.0)
    names = "memory of the process that builds for the names of files"
    assert before[names] == pytest.approx(256 * 2**30 / 1_600 * 10_000 / 1e12)
    assert after[names] == pytest.approx(2 * before[names])
    assert list(before.values()) == sorted(before.values())
    assert limits(workers=10)["seconds of 10 workers"] == pytest.approx(before["seconds of 1,000 workers"] / 100)


def test_the_plan_names_three_limits_and_each_stage() -> None:
    text = plan_text(SLOPES, Cluster())

    assert [name for name in STAGES.names if f"| {name} |" not in text] == []
    assert [line[:2] for line in text.splitlines() if "Moved by: " in line] == ["1.", "2.", "3."]


def test_own_numbers_are_options_and_what_cannot_be_used_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _written(tmp_path / "slopes.jsonl", SLOPES)
    assert (
        print_plan(
            ["--slopes", str(path), "--terabytes", "3", "--workers", "7", "--days", "2", "--shard-bytes", "1000000"]
        )
        == 0
    )
    assert capsys.readouterr().out.startswith("3 TB of source, 7 workers")

    lacking = _written(
        tmp_path / "lacking.jsonl", {name: value for name, value in SLOPES.items() if name != "requests"}
    )
    for arguments, code, said in (
        (["--slopes", str(lacking)], 1, "there is no requests"),
        (["--slopes", str(tmp_path / "none")], 1, "error: "),
        (["--workers", "0"], 2, "argument --workers"),
        (["--terabytes", "-1"], 2, "argument --terabytes"),
        (["--terabytes", "0"], 2, "expected more than 0"),
    ):
        with pytest.raises(SystemExit) as caught:
            print_plan(arguments)
        error = capsys.readouterr().err
        assert caught.value.code == code, error
        assert said in error
        assert "Traceback" not in error


def test_the_page_of_benchmarks_has_every_slope(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_plan([]) == 0
    assert "100 TB of source, 1,000 workers" in capsys.readouterr().out


def test_a_page_and_lines_give_the_same_slopes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("".join(f"| {name} | {value} | s |\n" for name, value in SLOPES.items()))

    assert read_slopes(page) == read_slopes(_written(tmp_path / "slopes.jsonl", SLOPES))
