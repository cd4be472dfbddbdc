"""What many tests share: a store that is empty, and one in which the made corpus was built once."""

from pathlib import Path

import pytest

from pipeline.build import BuildOrder, open_build
from pipeline.promotion import promote
from pipeline.recipes import TINY, pins_of
from pipeline.stages import StageResult, run_stages
from pipeline.store import Store


def build_tiny(root: Path, num_workers: int = 1) -> list[StageResult]:
    """Build the made corpus into a store."""
    order = BuildOrder("tiny", TINY.params, pins_of(TINY), "a test", num_workers)
    with open_build(order, Store(root)) as build:
        return list(run_stages(build))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


@pytest.fixture(scope="session")
def tiny_results(tmp_path_factory: pytest.TempPathFactory) -> list[StageResult]:
    """The results of the five stages over the made corpus, built and promoted once for all tests."""
    root = tmp_path_factory.mktemp("tiny") / "store"
    results = build_tiny(root)
    assert not results[-1].blocked, [verdict.sentence for verdict in results[-1].verdicts if not verdict.passed]
    promote(Store(root), "tiny")
    _ROOTS["tiny"] = root
    return results


_ROOTS: dict[str, Path] = {}


@pytest.fixture(scope="session")
def tiny_store(tiny_results: list[StageResult]) -> Store:
    """The store that `tiny_results` were built in. Tests read it; one that writes copies it first."""
    return Store(_ROOTS["tiny"])
