"""Fixtures that many tests share: an empty store, and one in which the made corpus was built once.

The trainer and the kernels run without the pipeline's libraries, and so do their tests: nothing is imported here before it is
needed, and a test that needs a built store is skipped where none can be built, with the libraries that are missing.
"""

import atexit
import fcntl
import gc
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.allowed_skips import pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401 (hooks)
from tests.quick import NOT_QUICK, is_quick, pytest_runtest_call, pytest_runtest_setup, pytest_sessionstart  # noqa: F401 (hooks)

if TYPE_CHECKING:
    from pipeline.build.run_stage import StageResult
    from pipeline.contracts.part import PartJob
    from pipeline.store.store import Store

WITHDRAWN = "lantern/src/**"
"""Selector of what `rebuilt_store` does not hold any more."""
BUILDING = ("detect_secrets", "duckdb", "license_expression", "numba", "re2", "spdx_matcher", "tree_sitter")
"""Libraries of the stages, which neither the trainer nor the kernels need."""


# Threads that wait for work in a spin take the cores of the tests beside them: half of the time of two workers.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_configure() -> None:
    """Let neither a clock nor luck decide a test of drawn examples: each run of a test has the same ones.

    `make campaign` draws others in each run, by SLUICE_DRAW_ANEW.
    """
    if find_spec("hypothesis") is not None:
        from hypothesis import settings

        settings.register_profile("sluice", deadline=None, derandomize="SLUICE_DRAW_ANEW" not in os.environ)
        settings.load_profile("sluice")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without walks for garbage, and leave what is loaded by then out of all later ones: they take a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        atexit.register(gc.unfreeze)  # else what a library holds is taken for leaked at the end
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of `make quick`, and put files with slow tests first, so that no worker ends with one alone."""
    slow_files = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow_files)
    for item in items:
        if is_quick(item):
            item.add_marker(pytest.mark.quick)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m gpu`, only files that mark a test so are read: the others import what a machine with a GPU may lack.

    With `-m quick`, files without a quick test are not read either: that takes each worker a third of what the others take.
    """
    if config.option.markexpr == "quick":
        return collection_path.relative_to(config.rootpath).as_posix() in NOT_QUICK or None
    if config.option.markexpr != "gpu":
        return None
    files = collection_path.rglob("test_*.py") if collection_path.is_dir() else [collection_path]
    files = [file for file in files if file.suffix == ".py"]
    return not any("mark.gpu" in file.read_text(encoding="utf-8") for file in files) or None


def build_tiny(root: Path, num_workers: int = 1) -> "list[StageResult]":
    """Build the made corpus into a store. Skips the test where that needs a library that is not here."""
    missing = [name for name in BUILDING if find_spec(name) is None]
    if missing:
        pytest.skip(f"needs a built store, and what builds one is not installed: {', '.join(missing)}")
    from pipeline.build.build import BuildRequest, open_build
    from pipeline.build.recipes import TINY, pins_of
    from pipeline.build.run_stage import run_stages
    from pipeline.store.store import Store

    order = BuildRequest("tiny", TINY.params, pins_of(TINY), "a test", num_workers)
    with open_build(order, Store(root)) as build:
        return list(run_stages(build))


def copy_consumer_proof(store: "Store", root: Path) -> None:
    """Store what the trainer answered on the made corpus in `root`, where a build that ends in its snapshot then starts no trainer.

    For tests that claim nothing about the trainer: starting it takes more than half of the time of such a build.
    """
    from pipeline.stages.verify.consumer import CONSUMER_PARTS
    from pipeline.store.store import Store
    from pipeline.store.store_layout import MANIFEST

    stage, copy = store.read(store.ref("tiny", "verify") or ""), Store(root)
    with copy.writer("copied", "a proof of the consumer") as scratch:
        for name in CONSUMER_PARTS:
            part = store.read(stage.manifest.inputs[f"part/{name}"])
            kept = (part.manifest.kind, part.manifest.identity, part.manifest.inputs)
            shutil.copytree(part.path, scratch / name, ignore=shutil.ignore_patterns(MANIFEST))
            copy.remember(part.manifest.key, copy.commit(scratch / name, *kept))


def sound_answer(job: "PartJob", command: object, key: str, *given: object) -> dict[str, Any]:
    """Answer as a trainer that finds nothing does, whatever the snapshot."""
    from pipeline.stages.verify.smoke import ROWS_OF_CHECKS

    checks = [{"num_compared": number, "num_differing": 0} for number in ROWS_OF_CHECKS]
    return {"snapshot_id": job.inputs["snapshot"].object_id, key: [1.0] if key == "losses" else checks}


@contextmanager
def known_answers(built: "Store") -> Iterator[None]:
    """Let builds of this process take what the canaries showed in `built`, a store of the made corpus, and ask no trainer.

    For tests that claim nothing about either, and build another snapshot: both take most of the time of such a build.
    """
    from pipeline.build.canaries import canaries
    from pipeline.contracts.gates_seen import CANARIES, GATES_SEEN
    from pipeline.contracts.part import PartOutput
    from pipeline.stages.verify import smoke

    stage = built.read(built.ref("tiny", "verify") or "")
    sent = built.read(stage.manifest.inputs["part/canaries"])
    files = {name: sent.file(name).read_bytes() for name in (CANARIES, GATES_SEEN)}
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(smoke, "_run_trainer", sound_answer)
        changed.setattr(canaries, "run_canaries", lambda job: PartOutput({}, files=files))
        yield


@pytest.fixture
def store(tmp_path: Path) -> "Store":
    """An empty store."""
    from pipeline.store.store import Store

    return Store(tmp_path / "store")


def built_once(
    name: str, build: Callable[[Path], object], config: pytest.Config, factory: pytest.TempPathFactory
) -> Path:
    """Return the root of a store that one worker of this run has built. Each of the others waits for it and has a copy.

    It then stands for the process that built it: what that made, shards too, each promotion would else make again.
    """
    own = factory.mktemp(name) / "store"
    if not hasattr(config, "workerinput"):  # the only process of the run
        build(own)
        return own
    shared = factory.getbasetemp().parent / f"built-{name}"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "store").exists():
            build(own)
            shutil.copytree(own, shared / "copying", symlinks=True)
            (shared / "copying").rename(shared / "store")
            return own
    from pipeline.build.stage_objects import mark_made

    shutil.copytree(shared / "store", own, symlinks=True)
    for path in own.glob("objects/*/*/*"):
        mark_made(path.name)
    return own


@pytest.fixture(scope="session")
def tiny_results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "list[StageResult]":
    """The results of the five stages over the made corpus, built and promoted once for all tests.

    A worker whose store another one has built finds every stage there.
    """
    from pipeline.build.promotion import promote
    from pipeline.store.store import Store

    made: list[StageResult] = []

    def build(root: Path) -> None:
        made.extend(build_tiny(root))
        assert not made[-1].blocked, [verdict.sentence for verdict in made[-1].verdicts if not verdict.passed]
        promote(Store(root), "tiny")

    _ROOTS["tiny"] = root = built_once("tiny", build, request.config, tmp_path_factory)
    if not made:
        with known_answers(Store(root)):
            made.extend(replace(result, unchanged=False) for result in build_tiny(root))
    return made


_ROOTS: dict[str, Path] = {}


@pytest.fixture(scope="session")
def tiny_store(request: pytest.FixtureRequest) -> "Store":
    """The store that `tiny_results` were built in. Tests read it; one that writes copies it first.

    SLUICE_TINY_STORE names one that `python -m pipeline build --recipe tiny --promote` has built, perhaps on another machine.
    """
    built_elsewhere = os.environ.get("SLUICE_TINY_STORE")
    if not built_elsewhere:
        request.getfixturevalue("tiny_results")
    from pipeline.store.store import Store

    return Store(Path(built_elsewhere) if built_elsewhere else _ROOTS["tiny"])


@pytest.fixture
def copied(tiny_store: "Store", tmp_path: Path) -> "Store":
    """A copy of the built store, which a test may change."""
    from pipeline.store.store import Store

    return Store(shutil.copytree(tiny_store.root, tmp_path / "store"))


@pytest.fixture(scope="session")
def rebuilt_store(
    tiny_store: "Store", request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "Store":
    """`live` is the snapshot of before, `candidate` the one without what was withdrawn. Tests read it."""
    from pipeline.build.withdrawal import withdraw
    from pipeline.store.store import Store

    def build(root: Path) -> None:
        shutil.copytree(tiny_store.root, root)
        withdraw(Store(root), WITHDRAWN, "its owner asked")
        with known_answers(tiny_store):
            build_tiny(root)

    return Store(built_once("rebuilt", build, request.config, tmp_path_factory))
