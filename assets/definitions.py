"""Definitions: assets, jobs and schedules of each corpus. Loads without torch or the libraries of the stages."""

import logging
import os
from collections.abc import Mapping, Sequence
from functools import partial

import dagster as dg

from assets import jobs
from assets.alerts import sensors
from assets.instance import dead_runs, sweep_at_load
from assets.keys import identifier, live_key, op_name, training_key
from assets.live_snapshot import PromotionParams, live_snapshot, moved_live
from assets.resources import StoreResource, build_resource, declared_corpora, refusal_of
from assets.stage_assets import stage_assets
from assets.training import params_of, training
from pipeline.build.run_stage import BuildCallback
from pipeline.core.command_line import with_options
from pipeline.core.params import Params
from pipeline.pins.corpora import Corpus

_LOG = logging.getLogger(__name__)


def definitions(callback: BuildCallback, corpora: Sequence[Corpus]) -> dg.Definitions:
    """Build the code location, with a callback for the stages and the training."""
    assets = [asset for corpus in corpora for asset in _assets_of(corpus, corpora, callback)]
    refused = {corpus.name: sentence for corpus in corpora if (sentence := refusal_of(corpus))}
    for sentence in refused.values():
        _LOG.warning("no build of it can begin: %s", sentence)
    return dg.Definitions(
        assets=dg.map_asset_specs(partial(_with_policy, refused), assets),
        jobs=jobs.jobs(corpora),
        schedules=jobs.schedules(corpora),
        sensors=[dead_runs, *(moved_live(each, corpora) for each in corpora), *sensors(corpora, os.environ)],
        resources={"store": StoreResource()},
        executor=dg.in_process_executor,
        loggers={"console": jobs.CONSOLE},
    )


def _assets_of(corpus: Corpus, corpora: Sequence[Corpus], callback: BuildCallback) -> list[dg.AssetsDefinition]:
    stages = stage_assets(build_resource(corpus, _forms(corpus)), callback)
    return [*stages, live_snapshot(corpus, corpora), training(corpus, callback)]


def _forms(corpus: Corpus) -> dict[str, type[Params]]:
    return {op_name(live_key(corpus.name)): PromotionParams, op_name(training_key(corpus.name)): params_of(corpus)}


def _with_policy(refused: Mapping[str, str], spec: dg.AssetSpec) -> dg.AssetSpec:
    """Set owners, group and tags the same way for every asset, and complete the commands that its description names.

    Of a corpus that is refused it begins with the sentence that says why.
    """
    corpus = spec.key.path[0]
    why = f"No build of this corpus can begin: {refused[corpus]}\n\n" if corpus in refused else ""
    return spec.replace_attributes(
        description=with_options(f"{why}{spec.description or ''}", corpus),
        owners=["team:data"],
        group_name=identifier(corpus),
        tags={**spec.tags, "corpus": corpus},
    )


defs = definitions(BuildCallback(), declared_corpora())
sweep_at_load(os.environ)
