"""Resources of the assets: the store, and a build that keeps its corpus locked for the whole run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field, PrivateAttr

from assets.instance import mark_worker, sweep, tag_corpus
from pipeline.build.build import Build, BuildRequest, Listener, open_build
from pipeline.build.recipes import RECIPES, ROOT, decisions_of, pins_of
from pipeline.build.run_stage import StageResult, run_stage
from pipeline.build.stage_objects import chain_params
from pipeline.core.errors import SluiceError
from pipeline.core.params import Params
from pipeline.stages.stages import stage_before
from pipeline.store.store import Store


def store_root() -> Path:
    """Return the path of the store: SLUICE_STORE, else `store/` at the root of the project."""
    return Path(os.environ.get("SLUICE_STORE", ROOT / "store"))


@contextmanager
def refusals() -> Iterator[None]:
    """Turn an error that a user can fix into a one-sentence failure without retries."""
    try:
        yield
    except SluiceError as error:
        raise dg.Failure(description=f"{type(error).__name__}: {error}", allow_retries=False) from None


class StoreResource(dg.ConfigurableResource[Any]):
    """The store, for runs that read it or move a ref. Tags the run with its worker and fails dead runs."""

    def open(self) -> Store:
        return Store(store_root())

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        _prepare_run(context)


class BuildResource(dg.ConfigurableResource[Any]):
    """One build: the corpus stays locked until the run ends, and the kernel unlocks it if the run is killed."""

    recipe: str = Field(
        default="quick",
        description=f"Recipe whose slice and held-out sources are built: {', '.join(RECIPES.names)}. "
        "The Params of the stages are under `ops`, whatever the recipe is.",
    )
    corpus: str = Field(default="", description="Name of the corpus that is written; the recipe's name if empty.")
    pins: str = Field(default="", description="Path of a pins file to build in place of the recipe's slice.")
    decisions: str = Field(
        default="",
        description="Path of a file of decisions; decisions.toml beside the pins, if there is one, if empty.",
    )
    workers: int = Field(default=2, description="Worker processes, at least 1. The bytes are the same for any number.")
    offline: bool = Field(default=False, description="Use archives in the store only.")
    wait_seconds: float = Field(default=3600.0, description="Seconds to wait for another build of the corpus.")

    _build: Build | None = PrivateAttr(default=None)
    _ids: dict[str, str] = PrivateAttr(default_factory=dict)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["BuildResource"]:
        _prepare_run(context)
        with refusals():
            recipe, pins = RECIPES[self.recipe], Path(self.pins) if self.pins else None
            request = BuildRequest(
                corpus=self.corpus or recipe.name,
                params=recipe.params,
                pins=pins_of(recipe, pins),
                who=f"run {context.run.run_id}" if context.run is not None else "a run",
                num_workers=max(1, self.workers),
                offline=self.offline,
                wait_seconds=self.wait_seconds,
                decisions=decisions_of(recipe, pins, Path(self.decisions) if self.decisions else None),
            )

            if context.instance is not None and context.run is not None:
                tag_corpus(context.instance, context.run.run_id, request.corpus)

            def on_wait(holder: str) -> None:
                if context.log is not None:
                    context.log.warning(
                        f"corpus {request.corpus} is being written by {holder}: waiting until it is done"
                    )

            with open_build(request, Store(store_root()), on_wait=on_wait) as build:
                self._build = build
                yield self

    @property
    def build(self) -> Build:
        """The build of this run."""
        if self._build is None:
            raise RuntimeError("a build exists only inside a run")
        return self._build

    def run(self, stage: str, params: Params, listen: Listener) -> StageResult:
        """Run a stage on the output of the stage before in this run or, if that was not part of it, on the ref of the corpus."""
        build = self.build
        before = stage_before(stage)
        previous = (self._ids.get(before) or build.store.ref(build.corpus, before)) if before else None
        whole = build.params.model_copy(update={**chain_params(build.store, previous), stage: params})
        request = replace(build.request, params=whole)
        result = run_stage(stage, replace(build, request=request, listen=listen), previous)
        self._ids[stage] = result.object_id
        return result


def _prepare_run(context: dg.InitResourceContext) -> None:
    if context.instance is not None and context.run is not None:
        mark_worker(context.instance, context.run.run_id)
        sweep(context.instance)
