"""Every engine keeps one contract: the same bytes, and a source that fails or ends its worker harms nothing else."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.build.engines.engine import Engine
from pipeline.build.engines.engine_kinds import ENGINES, open_engine
from pipeline.contracts.stage_report import StageReport
from pipeline.core.errors import SourceError, StageError
from pipeline.store.store import Store
from tests.pipeline.build.engines.part_functions import bytes_written, tasks
from tests.pipeline.build.engines.ray_cluster import ray_cluster

Opened = Callable[[], Engine]


@pytest.fixture(scope="module", params=ENGINES.names)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    scratch = tmp_path_factory.mktemp("scratch")
    if request.param == "ray":
        with ray_cluster() as cluster:
            yield lambda: open_engine("ray", 1, cluster.address, scratch)
    else:
        yield lambda: open_engine(request.param, 2, "", scratch)


def of_source(store: Store, function: str) -> list:  # type: ignore[type-arg]
    return [replace(task, is_of_source=True) for task in tasks(store, function)]


def test_the_bytes_are_those_of_one_process(opened: Opened, tmp_path: Path) -> None:
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    with open_engine("local", 1, "", tmp_path) as engine:
        list(engine.run(tasks(one, "number")))
    with opened() as engine:
        assert engine.num_workers == 2
        list(engine.run(tasks(other, "number")))

    assert bytes_written(one) == bytes_written(other)


def test_a_source_that_fails_is_a_result_and_the_others_continue(opened: Opened, store: Store) -> None:
    with opened() as engine:
        results = {task.part.name: result for task, result in engine.run(tasks(store, "refuse"))}

    assert "it is broken" in str(results.pop("1"))
    assert [type(result) for result in results.values()] == [StageReport] * 3


@pytest.mark.parametrize(
    ("function", "found"),
    [
        ("die_at_one", "worker"),
        ("hang_at_one", "no part was finished within 4 s"),
        ("break_at_one", "raised IndexError"),
    ],
)
def test_a_part_that_ends_its_worker_fails_its_source_alone(
    opened: Opened, store: Store, function: str, found: str
) -> None:
    with opened() as engine:
        engine.deadline_seconds = 4.0
        results = {task.part.name: result for task, result in engine.run(of_source(store, function))}

    assert found in str(results.pop("1"))
    assert [type(result) for result in results.values()] == [StageReport] * 3


def test_a_part_of_no_source_that_ends_its_worker_ends_the_build(opened: Opened, store: Store) -> None:
    with opened() as engine, pytest.raises(StageError, match=r"worker.*Run again"):
        list(engine.run(tasks(store, "die")))
    with opened() as engine, pytest.raises(IndexError):
        list(engine.run(tasks(store, "break_at_one")))


def test_an_error_of_a_source_has_its_four_fields(opened: Opened, store: Store) -> None:
    with opened() as engine:
        results = {task.part.name: result for task, result in engine.run(tasks(store, "refuse"))}

    error = results["1"]
    assert isinstance(error, SourceError)
    assert (error.subject, error.expected, error.remedy) == ("source one", "a sound one", "Repair it.")
