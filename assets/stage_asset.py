"""One factory for the five stages: read the form, run the stage, report it. The stage files say what each is for."""

import time
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

import dagster as dg

from assets.checks import check_result, check_specs
from assets.config import form, params_from
from assets.reporting import failures_text, snapshot_metadata, stage_metadata
from assets.resources import BuildResource, refusals
from pipeline.build.build import Build
from pipeline.build.recipes import CorpusParams
from pipeline.build.stages import STAGE_NAMES, StageResult, stage_named
from pipeline.build.watcher import Watcher
from pipeline.core.params import Params
from pipeline.core.progress import Progress
from pipeline.store.snapshot import open_snapshot


def stage_asset(name: str, description: str, watcher: Watcher) -> dg.AssetsDefinition:
    """The asset of one stage, downstream of the stage before, with its gates riding on it as checks."""
    key = dg.AssetKey(name)
    params_type: type[Params] = CorpusParams.model_fields[name].annotation  # type: ignore[assignment]  # a Params class
    config_type: Any = form(params_type)
    index = STAGE_NAMES.index(name)

    @dg.asset(
        key=key,
        deps=[dg.AssetKey(STAGE_NAMES[index - 1])] if index else [],
        check_specs=check_specs(name, key),
        code_version=str(stage_named(name).version),
        description=cleandoc(description),
    )
    def stage(
        context: dg.AssetExecutionContext, config: config_type, build: BuildResource
    ) -> Iterator[dg.MaterializeResult]:  # type: ignore[type-arg]  # Dagster reads the bare name
        def listen(progress: Progress) -> None:
            watcher.progress(progress)
            known = ", unchanged" if progress.unchanged else ""
            context.log.info(
                f"{name}: {progress.num_done} of {progress.num_parts} parts, "
                f"{progress.num_bytes / 1e6:.2f} MB ({progress.part}{known})"
            )

        started = time.monotonic()
        with refusals():
            result = build.run(name, params_from(config, params_type), listen)
        seconds = time.monotonic() - started
        watcher.finished(result, seconds)
        _say_what_failed(result, context)
        yield dg.MaterializeResult(
            asset_key=key,
            metadata=_metadata(result, seconds, build.build),
            data_version=dg.DataVersion(result.object_id),
            check_results=[check_result(verdict, key, failures_text(result)) for verdict in result.verdicts],
        )
        with refusals():  # Dagster would stop here too, and name the checks alone
            result.refuse_blocked(build.build.corpus)

    return stage


def _say_what_failed(result: StageResult, context: dg.AssetExecutionContext) -> None:
    """Into the run's log, where Dagster itself only names the checks: each cause, value and limit."""
    for error in result.failures.values():
        context.log.error(f"{type(error).__name__}: {error}")
    for verdict in result.verdicts:
        if not verdict.passed:
            (context.log.error if verdict.blocking else context.log.warning)(f"{verdict.sentence}. {verdict.why}")


def _metadata(result: StageResult, seconds: float, build: Build) -> dict[str, Any]:
    """The stage's metadata; where it ends with a candidate, what is in that stands first."""
    metadata = stage_metadata(result, seconds, build.corpus)
    if result.snapshot_id is None or result.blocked:
        return metadata
    snapshot = open_snapshot(build.store, result.snapshot_id)
    return {
        "corpus": build.corpus,
        **snapshot_metadata(build.store, snapshot),
        **metadata,
        "snapshot_id": result.snapshot_id,
    }
