"""Where everything is assembled: assets, their policy, jobs, schedules, resources. Loads without torch or stage libraries."""

import dagster as dg

from assets import collect, enrich, jobs, normalize, tokenize, verify
from assets.resources import BuildResource, StoreResource
from assets.snapshot import live_snapshot
from assets.training import training
from pipeline.records import Document, EnrichedDocument, SourceFile, TokenizedDocument, TrainingRow
from pipeline.schema import arrow_schema
from pipeline.watcher import Nobody, Watcher

LOCATION = "sluice"
_KINDS = {
    "collect": {"python"},
    "normalize": {"python"},
    "enrich": {"cplus"},
    "tokenize": {"arrow"},
    "verify": {"python"},
    "live": {"parquet"},
    "training": {"pytorch"},
}
_RECORDS = {
    "collect": SourceFile,
    "normalize": Document,
    "enrich": EnrichedDocument,
    "tokenize": TokenizedDocument,
    "live": TrainingRow,
}


def definitions(watcher: Watcher) -> dg.Definitions:
    """The code location, with somebody watching the stages."""
    stages = [
        module(watcher)
        for module in (collect.collect, normalize.normalize, enrich.enrich, tokenize.tokenize, verify.verify)
    ]
    return dg.Definitions(
        assets=dg.map_asset_specs(_with_policy, [*stages, live_snapshot(), training(watcher)]),
        jobs=jobs.jobs(),
        schedules=jobs.schedules(),
        resources={"build": BuildResource(), "store": StoreResource()},
        executor=dg.in_process_executor,
    )


def _with_policy(spec: dg.AssetSpec) -> dg.AssetSpec:
    """Owners, group, kinds and the columns of what it writes, the same way for every asset."""
    name = spec.key.path[-1]
    group = "model" if name == "training" else "corpus"
    columns = {"dagster/column_schema": _columns(_RECORDS[name])} if name in _RECORDS else {}
    spec = spec.replace_attributes(owners=["team:data"], group_name=group, kinds=_KINDS[name])
    return spec.merge_attributes(metadata=columns)


def _columns(record: type) -> dg.TableSchema:
    return dg.TableSchema(
        columns=[
            dg.TableColumn(field.name, str(field.type), constraints=dg.TableColumnConstraints(nullable=field.nullable))
            for field in arrow_schema(record)
        ]
    )


defs = definitions(Nobody())
