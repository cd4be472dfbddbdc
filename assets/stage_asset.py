"""One factory for the five stages: read the form, run the stage, report it. The stage files say what each is for."""

import time
from typing import Any

import dagster as dg

from assets.checks import check_result, check_specs
from assets.config import form, params_from
from assets.reporting import stage_metadata
from assets.resources import BuildResource, refusals
from pipeline.params import Params
from pipeline.progress import Progress
from pipeline.recipes import CorpusParams
from pipeline.stages import STAGE_NAMES, stage_named
from pipeline.watcher import Watcher


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
        description=description,
    )
    def stage(context: dg.AssetExecutionContext, config: config_type, build: BuildResource) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster reads the bare name
        def listen(progress: Progress) -> None:
            watcher.progress(progress)
            context.log.info(f"{progress.num_done}/{progress.num_parts} {progress.part}")

        started = time.monotonic()
        with refusals():
            result = build.run(name, params_from(config, params_type), listen)
        seconds = time.monotonic() - started
        watcher.finished(result, seconds)
        for error in result.failures.values():
            context.log.error(str(error))
        return dg.MaterializeResult(
            asset_key=key,
            metadata=stage_metadata(result, seconds),
            data_version=dg.DataVersion(result.object_id),
            check_results=[check_result(verdict, key) for verdict in result.verdicts],
        )

    return stage
