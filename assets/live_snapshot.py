"""Asset `snapshot/live`: promotion, which judges every gate again from stored reports, then moves the ref."""

from inspect import cleandoc
from typing import Any

import dagster as dg
from pydantic import Field

from assets.forms import form, params_from
from assets.instance import tag_corpus
from assets.reporting import snapshot_metadata, table, verdict_rows
from assets.resources import StoreResource, refusals
from pipeline.build.promotion import promote
from pipeline.contracts.gates import summary
from pipeline.core.params import Params
from pipeline.stages.stages import STAGES
from pipeline.store.snapshot import open_snapshot

LIVE = dg.AssetKey(["snapshot", "live"])


class PromotionParams(Params):
    """Arguments of a promotion. To roll back, promote an older id."""

    corpus: str = "quick"
    """The corpus whose live snapshot moves."""
    to: str = Field(default="candidate", min_length=1)
    """A snapshot id, or `candidate`."""
    reason: str = "promoted by the job"
    """Reason; kept in the history."""


def live_snapshot() -> dg.AssetsDefinition:
    """Promote the snapshot that training runs use, only if every blocking gate passes on stored reports.

    Every gate of every stage is judged again from the stored reports; then the ref `live` of the corpus moves, or nothing does.
    To roll back, promote an older id. By hand: `python -m pipeline promote --to ID --reason WHY`.
    """
    config_type: Any = form(PromotionParams)

    @dg.asset(
        key=LIVE,
        deps=[dg.AssetKey(STAGES.names[-1])],
        description=cleandoc(live_snapshot.__doc__ or ""),
        kinds={"parquet"},
    )
    def live(context: dg.AssetExecutionContext, config: config_type, store: StoreResource) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster reads the bare name
        with refusals():
            params = params_from(config, PromotionParams)
            tag_corpus(context.instance, context.run.run_id, params.corpus)
            opened = store.open()
            done = promote(opened, params.corpus, params.to, params.reason)
            snapshot = open_snapshot(opened, done.new)
        return dg.MaterializeResult(
            asset_key=LIVE,
            data_version=dg.DataVersion(done.new),
            metadata={
                "corpus": params.corpus,
                "reason": params.reason,
                "unchanged": done.unchanged,
                **snapshot_metadata(opened, snapshot),
                "gates passed": summary(done.verdicts),
                "gates": table(verdict_rows(done.verdicts)),
                "snapshot_id": done.new,
                "live before": done.old or "none",
            },
        )

    return live
