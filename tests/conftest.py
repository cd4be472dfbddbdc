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
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.allowed_skips import pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401 (hooks)

if TYPE_CHECKING:
    from pipeline.build.run_stage import StageResult
    from pipeline.store.store import Store

WITHDRAWN = "lantern/src/**"
"""Selector of what `rebuilt_store` does not hold any more."""
BUILDING = ("detect_secrets", "duckdb", "license_expression", "numba", "re2", "spdx_matcher", "tree_sitter")
"""Libraries of the stages, which neither the trainer nor the kernels need."""


# Threads that wait for work in a spin take the cores of the tests beside them: half of the time of two workers.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

NOT_QUICK = (
    "tests/assets/test_instance.py",
    "tests/assets/test_jobs.py",
    "tests/assets/test_definitions.py::test_definitions_load",
    "tests/assets/test_live_snapshot.py",
    "tests/assets/test_training.py::test_terminate",
    "tests/assets/test_web.py::test_a_second_ui",
    "tests/faults",
    "tests/kernels/framework/test_operation.py",
    "tests/kernels/measure",
    "tests/pipeline/build/engines/test_engine.py",
    "tests/pipeline/build/engines/test_local_engine.py",
    "tests/pipeline/build/engines/test_ray_engine.py",
    "tests/pipeline/cli/test_building.py",
    "tests/pipeline/core/test_child_process.py",
    "tests/pipeline/lexing/test_cpp.py::test_code_in_comments",
    "tests/pipeline/lexing/test_cpp.py::test_random_bytes",
    "tests/pipeline/lexing/test_cpp.py::test_tokens_comments",
    "tests/pipeline/lexing/test_cpp_blanked.py::test_any_heap",
    "tests/pipeline/lexing/test_jit.py",
    "tests/pipeline/lexing/test_languages.py::test_a_file_of_a_language",
    "tests/pipeline/stages/collect/network",
    "tests/pipeline/stages/enrich/chunking/test_chunks.py::test_real_files",
    "tests/pipeline/stages/enrich/chunking/test_sizes.py::test_a_sum_of_many",
    "tests/pipeline/stages/enrich/chunking/test_spans.py::test_chunks_are",
    "tests/pipeline/stages/enrich/compiler",
    "tests/pipeline/stages/enrich/syntax/test_grammar.py::test_a_million",
    "tests/pipeline/stages/enrich/test_stage.py",
    "tests/pipeline/lineage/test_why.py::test_a_stage_before_collect",
    "tests/pipeline/sandbox",
    "tests/pipeline/store/test_objects.py::test_racing",
    "tests/pipeline/store/test_refs.py::test_a_reader_beside",
    "tests/support",
    "tests/tools",
    "tests/trainer/bench",
    "tests/trainer/compile",
    "tests/trainer/data/test_batch.py::test_any_division",
    "tests/trainer/data/test_keyed_hash.py::test_it_is_a_bijection",
    "tests/trainer/data/test_loader_division.py",
    "tests/trainer/data/test_mixture.py::test_every_prefix",
    "tests/trainer/data/test_prefetch.py",
    "tests/trainer/inference",
    "tests/trainer/model",
    "tests/trainer/proof",
    "tests/trainer/checkpoint/test_initial_weights.py",
    "tests/trainer/train",
    "tests/pipeline/lexing/test_languages_registered.py",
    "tests/pipeline/lexing/test_languages.py::test_a_registered_language",
    "tests/test_allowed_skips.py",
    "tests/test_architecture.py::test_light_modules",
    "tests/test_expressions.py::test_what_makes",
    "tests/trainer/test_main.py::test_the_parser_loads",
    "tests/pipeline/stages/verify/test_consumer.py::test_every_file",
    "tests/pipeline/stages/normalize/contamination/test_decontaminate.py",
    "tests/pipeline/stages/normalize/duplicates/test_copyleft.py",
    "tests/pipeline/stages/normalize/test_decided_files.py",
    "tests/pipeline/stages/normalize/test_compare_sources.py",
    "tests/pipeline/stages/normalize/filters/test_code_shapes.py::test_nine_of_ten",
    "tests/pipeline/stages/normalize/license/test_read_comments.py::test_an_identifier_is_the_license",
    "tests/pipeline/stages/normalize/license/test_read_comments.py::test_a_restriction_is_not",
    "tests/pipeline/stages/normalize/encodings/test_legacy_encodings.py::test_most_sound",
    "tests/pipeline/stages/normalize/encodings/test_legacy_encodings.py::test_nearly_no_wrong_text",
    "tests/pipeline/stages/normalize/encodings/test_legacy_encodings.py::test_little_is_kept",
    "tests/pipeline/stages/normalize/scrub/secrets/test_tool_secrets.py",
)
"""Files, folders and tests that start processes, compile, train or judge by thousands of texts: `make quick` leaves them out."""
_BUILT = {"tiny_results", "tiny_store", "rebuilt_store", "blocked_store"}


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
        if _is_quick(item):
            item.add_marker(pytest.mark.quick)


def _is_quick(item: pytest.Item) -> bool:
    place = f"{item.path.relative_to(item.config.rootpath).as_posix()}::{item.name}"
    if any(item.get_closest_marker(name) for name in ("slow", "gpu", "net")) or place.startswith(NOT_QUICK):
        return False
    if place.startswith("tests/test_golden.py"):
        return item.name == "test_the_made_corpus_ends_in_the_golden_id"
    return not _BUILT & set(getattr(item, "fixturenames", ()))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m gpu`, only files that mark a test so are read: the others import what a machine with a GPU may lack."""
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
    from pipeline.store.objects import MANIFEST
    from pipeline.store.store import Store

    stage, copy = store.read(store.ref("tiny", "verify") or ""), Store(root)
    with copy.writer("copied", "a proof of the consumer") as scratch:
        for name in CONSUMER_PARTS:
            part = store.read(stage.manifest.inputs[f"part/{name}"])
            kept = (part.manifest.kind, part.manifest.identity, part.manifest.inputs)
            shutil.copytree(part.path, scratch / name, ignore=shutil.ignore_patterns(MANIFEST))
            copy.remember(part.manifest.key, copy.commit(scratch / name, *kept))


@pytest.fixture
def store(tmp_path: Path) -> "Store":
    """An empty store."""
    from pipeline.store.store import Store

    return Store(tmp_path / "store")


def built_once(
    name: str, build: Callable[[Path], object], config: pytest.Config, factory: pytest.TempPathFactory
) -> Path:
    """Return the root of a store that one worker of this run has built. Each of the others waits for it and has a copy."""
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
    shutil.copytree(shared / "store", own, symlinks=True)
    return own


@pytest.fixture(scope="session")
def tiny_results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "list[StageResult]":
    """The results of the five stages over the made corpus, built and promoted once for all tests.

    A worker whose store another one has built finds every stage there, and then stands for the process that built it.
    """
    from pipeline.build.promotion import promote
    from pipeline.build.stage_objects import mark_made
    from pipeline.store.store import Store

    made: list[StageResult] = []

    def build(root: Path) -> None:
        made.extend(build_tiny(root))
        assert not made[-1].blocked, [verdict.sentence for verdict in made[-1].verdicts if not verdict.passed]
        promote(Store(root), "tiny")

    _ROOTS["tiny"] = root = built_once("tiny", build, request.config, tmp_path_factory)
    if not made:
        made.extend(replace(result, unchanged=False) for result in build_tiny(root))
        for part_id in (part_id for result in made for part_id in result.parts.values()):
            mark_made(part_id)
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
        build_tiny(root)

    return Store(built_once("rebuilt", build, request.config, tmp_path_factory))
