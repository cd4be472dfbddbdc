"""Stage assets: one for each stage of STAGES, which reads its launchpad form, runs the stage and reports the result."""

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import cleandoc
from pathlib import Path
from typing import Any

import dagster as dg

from assets.checks import check_result, check_specs, report_unplanned
from assets.forms import overrides_form
from assets.keys import BUILD_POOL, build_key, stage_key
from assets.reporting import cause_metadata, column_schema, page_link, snapshot_metadata, stage_metadata
from assets.resources import BuildResource, refusals
from pipeline.build.build import Build, ProgressEvent
from pipeline.build.recipes import ROOT
from pipeline.build.run_stage import BuildCallback, StageResult
from pipeline.contracts.stage import Stage
from pipeline.core.table_names import DOCUMENTS
from pipeline.lineage.stored_build import report_path
from pipeline.stages.stages import STAGES, stage_before, stage_with
from pipeline.store.refs import LAST
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store

_REPORT = "report of the last build"


def stage_assets(resource: BuildResource, callback: BuildCallback) -> list[dg.AssetsDefinition]:
    """Build the asset of every stage of the corpus that the resource builds."""
    return [_stage_asset(stage, resource, callback) for stage in STAGES]


def _stage_asset(stage: Stage, builds: BuildResource, callback: BuildCallback) -> dg.AssetsDefinition:
    """Build the asset of one stage, downstream of the stage before, with its gates as asset checks."""
    corpus = builds.corpus
    name, key, before = stage.name, stage_key(corpus, stage.name), stage_before(stage.name)
    config_type: Any = overrides_form(stage.params_class())
    resource = build_key(corpus)

    @dg.asset(
        key=key,
        deps=[stage_key(corpus, before)] if before else [],
        required_resource_keys={resource},
        check_specs=check_specs(name, key),
        code_version=str(stage.version),
        description=cleandoc(stage.description),
        kinds=set(stage.asset_kinds),
        pool=BUILD_POOL,
        metadata={"dagster/code_references": _code_of(stage.run)},
    )
    def run(context: dg.AssetExecutionContext, config: config_type) -> Iterator[dg.MaterializeResult]:  # type: ignore[type-arg]  # Dagster reads the bare name
        def listen(progress: ProgressEvent) -> None:
            callback.progress(progress)
            what = f"{progress.part}, unchanged" if progress.unchanged else progress.part
            context.log.info(
                f"{name}: {progress.num_done} of {progress.num_parts} parts, {progress.num_bytes / 1e6:.2f} MB ({what})"
            )

        with refusals(corpus, f"stage {name}"):
            started, build = time.monotonic(), getattr(context.resources, resource)
            with _unplanned_if_refused(context, key):
                opened = build.build
            result = build.run(name, config, listen)
            seconds = time.monotonic() - started
            callback.finished(result, seconds)
            _log_failures(result, context)
            metadata = _metadata(result, seconds, opened) | _links(result, opened.store, corpus)
            build.unlock_after(name)
            if result.blocked and _REPORT in metadata:
                context.log.error(f"the report is {metadata[_REPORT].value}")
            yield dg.MaterializeResult(
                asset_key=key,
                metadata=metadata,
                data_version=dg.DataVersion(result.object_id),
                check_results=[check_result(verdict, key, cause_metadata(result)) for verdict in result.verdicts],
            )
            result.refuse_blocked(corpus)  # Dagster would stop here too, but name only the checks

    found: dg.AssetsDefinition = dg.with_resources([run], {resource: builds})[0]  # its own: no form of others has it
    return found


@contextmanager
def _unplanned_if_refused(context: dg.AssetExecutionContext, key: dg.AssetKey) -> Iterator[None]:
    """Report an asset that was refused before it did anything as planned by no run."""
    try:
        yield
    except Exception:
        report_unplanned(context.instance, key)
        raise


def _file_of(place: str) -> Path:
    """Return the file of what is declared as `package.module:name`."""
    return ROOT.joinpath(*place.partition(":")[0].split(".")).with_suffix(".py")


def _code_of(place: str) -> dg.CodeReferencesMetadataValue:
    """Return the link to the file of what is declared as `package.module:name`."""
    path = _file_of(place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.CodeReferencesMetadataValue(
            code_references=[dg.LocalFileCodeReference(file_path=str(path), line_number=1, label=place)]
        )


def _log_failures(result: StageResult, context: dg.AssetExecutionContext) -> None:
    """Log the warnings, and the cause, value and limit of each failure: Dagster itself only names the checks."""
    for warning in result.warnings:
        context.log.warning(warning)
    for error in result.failures.values():
        context.log.error(f"{type(error).__name__}: {error}")
    for verdict in result.verdicts:
        if not verdict.passed:
            (context.log.error if verdict.blocking else context.log.warning)(f"{verdict.sentence}. {verdict.why}")


def _metadata(result: StageResult, seconds: float, build: Build) -> dict[str, Any]:
    """Build the metadata of a stage, with those of its snapshot first if it made one."""
    metadata = stage_metadata(result, seconds, build.corpus)
    kept = [table.record for kind in STAGES[result.stage].parts for table in kind.tables if table.lists_kept]
    if kept:
        metadata["dagster/column_schema"] = column_schema(kept[0])
    if result.snapshot_id is None or result.blocked:
        return metadata
    snapshot = open_snapshot(build.store, result.snapshot_id)
    return {
        "corpus": build.corpus,
        **snapshot_metadata(build.store, snapshot),
        **metadata,
        "snapshot_id": result.snapshot_id,
    }


def _links(result: StageResult, store: Store, corpus: str) -> dict[str, dg.MetadataValue[Any]]:
    """Return links to the code of a stage and to the report, which is written where a build ends; and the card of its snapshot."""
    links: dict[str, dg.MetadataValue[Any]] = {"code": dg.MetadataValue.path(str(_file_of(STAGES[result.stage].run)))}
    has_documents = STAGES.names.index(result.stage) >= STAGES.names.index(stage_with(DOCUMENTS).name)
    if result.blocked and not has_documents:
        return links
    page = report_path(store, corpus, LAST)
    if result.blocked or (result.snapshot_id and not (result.unchanged and page.exists())):
        from pipeline.lineage.report_page import write_report  # only where a build ends: it loads DuckDB

        write_report(store, corpus, LAST)
    if result.snapshot_id and not result.blocked:
        from pipeline.export.card import facts_of, markdown_card  # only where a build ends: they load DuckDB

        card = markdown_card(facts_of(open_snapshot(store, result.snapshot_id)))
        links["card"] = dg.MetadataValue.md(card)
    return {**links, _REPORT: page_link(page)}
