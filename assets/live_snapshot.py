"""Asset `live` of a corpus: promotion, which judges every gate again from stored reports, then moves the ref."""

from datetime import timedelta
from inspect import cleandoc
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from assets.forms import form, params_from
from assets.instance import address_of_ui, tag_corpus
from assets.keys import live_key, stage_key
from assets.reporting import snapshot_metadata, table, verdict_rows
from assets.resources import StoreResource, refusals
from pipeline.build.promotion import promote
from pipeline.build.recipes import RECIPES, params_of
from pipeline.contracts.gates import summary
from pipeline.core.durable import replace
from pipeline.core.params import Params
from pipeline.pins.corpora import Corpus
from pipeline.stages.stages import STAGES
from pipeline.store.log import PROMOTIONS
from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store

REPORTS = "reports"
"""Folder of the pages of reports in the store, and below the address of the UI."""
_NUM_SAMPLES = 5
_ROLL_BACK = "launch promote with to: the id of `live before`"


class PromotionParams(Params):
    """Arguments of a promotion. To roll back, promote an older id."""

    to: str = Field(default="candidate", min_length=1)
    """A snapshot id, or `candidate`."""
    reason: str = ""
    """Reason, kept in the history. Required where limits are not the recipe's."""


def live_snapshot(corpus: Corpus) -> dg.AssetsDefinition:
    """Promote the snapshot that training runs use, only if every blocking gate passes on stored reports.

    Every gate of every stage is judged again from the stored reports; then the ref `live` of the corpus moves, or nothing does.
    To roll back, promote an older id. By hand: `python -m pipeline promote --to ID --reason WHY`.
    """
    config_type: Any = form(PromotionParams)
    name, key = corpus.name, live_key(corpus.name)

    @dg.asset(
        key=key,
        deps=[stage_key(name, STAGES.names[-1])],
        description=cleandoc(live_snapshot.__doc__ or ""),
        kinds={"parquet"},
        freshness_policy=_freshness(corpus),
    )
    def live(context: dg.AssetExecutionContext, config: config_type, store: StoreResource) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster reads the bare name
        with refusals():
            params = params_from(config, PromotionParams)
            tag_corpus(context.instance, context.run.run_id, name)
            opened = store.open()
            expected = params_of(RECIPES[corpus.recipe], corpus.pins)
            done = promote(opened, name, params.to, params.reason or None, expected=expected)
            snapshot = open_snapshot(opened, done.new)
            card, page = describe(snapshot, name)
        return dg.MaterializeResult(
            asset_key=key,
            data_version=dg.DataVersion(done.new),
            metadata={
                "corpus": name,
                "snapshot_id": done.new,
                **live_history(opened, name),
                "reason": done.reason,
                "unchanged": done.unchanged,
                "roll back": _ROLL_BACK,
                "card": dg.MetadataValue.md(card),
                **(
                    {"report": dg.MetadataValue.url(f"{address_of_ui()}/{REPORTS}/{page.name}")}
                    if page.exists()
                    else {}
                ),
                **snapshot_metadata(opened, snapshot),
                "gates passed": summary(done.verdicts),
                "gates": table(verdict_rows(done.verdicts)),
                **(
                    {"limits that are not the recipe's": table([each._asdict() for each in done.other_limits])}
                    if done.other_limits
                    else {}
                ),
            },
        )

    return live


def live_history(store: Store, corpus: str) -> dict[str, str]:
    """Return since when the live snapshot of a corpus is live, and the id of the one before, as the history says."""
    moves = [entry for entry in store.entries(PROMOTIONS) if (entry["corpus"], entry["ref"]) == (corpus, "live")]
    last: dict[str, Any] = next((entry for entry in reversed(moves) if entry["old"] != entry["new"]), {})
    return {"live since": str(last.get("when", "unknown")), "live before": str(last.get("old") or "none")}


def describe(snapshot: Snapshot, corpus: str) -> tuple[str, Path]:
    """Return the data card of a snapshot as Markdown, and the page of what became of each file, written into the store.

    The page is of the last build: it is not written where that made another snapshot, as after a roll back.
    """
    from pipeline.export.card import facts_of, markdown_card  # not before a snapshot is promoted: they load DuckDB
    from pipeline.lineage.report import report_corpus
    from pipeline.lineage.report_page import render_page

    page = snapshot.store.root / REPORTS / f"{corpus}-{snapshot.snapshot_id[:12]}.html"
    if not page.exists() and snapshot.store.ref(corpus, "candidate") == snapshot.snapshot_id:
        page.parent.mkdir(parents=True, exist_ok=True)
        replace(page, render_page(report_corpus(snapshot.store, corpus, _NUM_SAMPLES)).encode())
    return markdown_card(facts_of(snapshot)), page


def _freshness(corpus: Corpus) -> dg.FreshnessPolicy | None:
    age = corpus.max_age_hours
    return None if age is None else dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=age))
