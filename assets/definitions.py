"""Where everything is assembled: assets, their policy, jobs, schedules, resources. Loads without torch or stage libraries."""

import dagster as dg

from assets import collect, enrich, jobs, normalize, tokenize, verify
from assets.resources import BuildResource, StoreResource
from assets.snapshot import live_snapshot
from assets.training import training
from pipeline.build.watcher import Nobody, Watcher

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
    """Owners, group and kinds, the same way for every asset."""
    name = spec.key.path[-1]
    group = "model" if name == "training" else "corpus"
    return spec.replace_attributes(owners=["team:data"], group_name=group, kinds=_KINDS[name])


defs = definitions(Nobody())
