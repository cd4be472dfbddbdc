"""The asset `snapshot/live`: promotion. Judges every gate again from stored evidence, then moves the ref."""

from typing import Any

import dagster as dg
from pydantic import Field

from assets.config import form, params_from
from assets.reporting import verdict_rows
from assets.resources import StoreResource, refusals
from pipeline.params import Params
from pipeline.promotion import promote
from pipeline.snapshot import open_snapshot

LIVE = dg.AssetKey(["snapshot", "live"])


class PromotionParams(Params):
    """What is promoted. Rolling back is promoting an older id."""

    corpus: str = "quick"
    """The corpus whose live snapshot moves."""
    to: str = Field(default="candidate", min_length=1)
    """A snapshot id, or `candidate`."""
    reason: str = "promoted by the job"
    """Why; kept in the history."""


def live_snapshot() -> dg.AssetsDefinition:
    """The snapshot that trainings use, moved only when every blocking gate passes on stored evidence."""
    config_type: Any = form(PromotionParams)

    @dg.asset(key=LIVE, deps=[dg.AssetKey("verify")], description=live_snapshot.__doc__)
    def live(context: dg.AssetExecutionContext, config: config_type, store: StoreResource) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster reads the bare name
        with refusals():
            params = params_from(config, PromotionParams)
            opened = store.open()
            done = promote(opened, params.corpus, params.to, params.reason)
            snapshot = open_snapshot(opened, done.new)
        return dg.MaterializeResult(
            asset_key=LIVE,
            data_version=dg.DataVersion(done.new),
            metadata={
                "snapshot_id": done.new,
                "before": done.old or "none",
                "unchanged": done.unchanged,
                "documents": sum(source.num_documents for source in snapshot.sources),
                "tokens": sum(source.num_tokens for source in snapshot.sources),
                "gates": verdict_rows(done.verdicts),
            },
        )

    return live
