"""Definitions: assets with their policy, jobs, schedules and resources. Loads without torch or the libraries of the stages."""

import dagster as dg

from assets import jobs
from assets.live_snapshot import live_snapshot
from assets.resources import BuildResource, StoreResource
from assets.stage_assets import stage_assets
from assets.training import TRAINING, training
from pipeline.build.run_stage import BuildCallback


def definitions(callback: BuildCallback) -> dg.Definitions:
    """Build the code location, with a callback for the stages and the training."""
    return dg.Definitions(
        assets=dg.map_asset_specs(_with_policy, [*stage_assets(callback), live_snapshot(), training(callback)]),
        jobs=jobs.jobs(),
        schedules=jobs.schedules(),
        resources={"build": BuildResource(), "store": StoreResource()},
        executor=dg.in_process_executor,
    )


def _with_policy(spec: dg.AssetSpec) -> dg.AssetSpec:
    """Set owners and group the same way for every asset."""
    return spec.replace_attributes(owners=["team:data"], group_name="model" if spec.key == TRAINING else "corpus")


defs = definitions(BuildCallback())
