"""Asset `live` of a corpus: promotion, which judges every gate again from stored reports, then moves the ref; and its sensor."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from inspect import cleandoc
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_TAG
from pydantic import Field

from assets.forms import form, params_from
from assets.instance import tag_corpus
from assets.keys import identifier, job_name, live_key, stage_key
from assets.reporting import REPORTS, page_link, snapshot_metadata, table, verdict_rows
from assets.resources import StoreResource, refusals, store_root
from pipeline.build.promotion import judge_again, promote, refuse_foreign, rolled_back
from pipeline.build.recipes import corpus_recipe
from pipeline.build.stage_objects import live_proof
from pipeline.contracts.gates import GateVerdict, summary
from pipeline.core.durable import replace
from pipeline.core.params import Params
from pipeline.lineage.stored_build import candidate_of_before
from pipeline.pins.corpora import Corpus
from pipeline.stages.stages import STAGES
from pipeline.store.kept import NUM_LIVE
from pipeline.store.refs import AFTER_BUILD, LIVE
from pipeline.store.snapshot import Snapshot, open_snapshot, resolve_snapshot
from pipeline.store.store import Store
from pipeline.store.store_layout import is_id

_NUM_SAMPLES = 5
_CANDIDATE = "candidate"
_LEFT = "candidate is left"
"""The name of what the page of `live` says of a candidate that a person rolled back from."""
_LIMITS = "live by limits that are not the recipe's"


class PromotionParams(Params):
    """Arguments of a promotion. To roll back, promote an older id."""

    to: str = Field(default=_CANDIDATE, min_length=1)
    """A snapshot id, or `candidate`."""
    reason: str = ""
    """Reason, kept in the history. Required where limits are not the recipe's, or for a snapshot of another corpus."""


def live_snapshot(corpus: Corpus, corpora: Sequence[Corpus]) -> dg.AssetsDefinition:
    """Promote the snapshot that training runs use, only if every blocking gate passes on stored reports.

    Every gate of every stage is judged again from the stored reports; then the ref `live` of the corpus moves, or nothing does.
    To roll back, promote an older id: what was live then is made live again only with a reason.
    By hand: `python -m pipeline promote --to ID --reason WHY`.
    """
    config_type: Any = form(PromotionParams)
    name, key, job = corpus.name, live_key(corpus.name), job_name("promote", corpus.name, corpora)

    @dg.asset(
        key=key,
        output_required=False,
        deps=[stage_key(name, STAGES.names[-1])],
        description=cleandoc(live_snapshot.__doc__ or ""),
        kinds={"parquet"},
        freshness_policy=_freshness(corpus),
    )
    def live(
        context: dg.AssetExecutionContext, config: config_type, store: StoreResource
    ) -> Iterator[dg.MaterializeResult]:  # type: ignore[type-arg]  # Dagster reads the bare name
        with refusals(name, "promotion", "`python -m pipeline show --of live` tells what is live."):
            params = params_from(config, PromotionParams)
            tag_corpus(context.instance, context.run.run_id, name)
            opened = store.open()
            follows_build = stage_key(name, STAGES.names[-1]) in context.job_def.asset_layer.selected_asset_keys
            if follows_build and not params.reason.strip() and (left := _left(opened, name, params.to)):
                context.log.warning(left)
                context.log_event(dg.AssetObservation(key, description=left, metadata={_LEFT: left}))
                return
            if params.to == _CANDIDATE and (sentence := candidate_of_before(opened, name)):
                context.log.warning(sentence)
            expected = corpus_recipe(corpus).params
            refuse_foreign(opened, name, params.to, params.reason)
            how = AFTER_BUILD if follows_build else "promoted"
            done = promote(opened, name, params.to, params.reason or None, expected=expected, how=how)
            metadata = live_metadata(opened, name, job, done.verdicts)
            if params.reason and not done.is_logged:
                context.log.warning(f"{done.new[:12]} is live already: nothing moved, and the reason is not kept")
            limits = [each._asdict() for each in done.other_limits]
            metadata |= {"limits that are not the recipe's": table(limits)} if limits else {}
            yield dg.MaterializeResult(
                asset_key=key,
                data_version=dg.DataVersion(done.new),
                metadata=metadata
                | ({"reason": done.reason} if params.reason and done.is_logged else {})
                | {"unchanged": done.unchanged},
            )

    return live


def moved_live(corpus: Corpus, corpora: Sequence[Corpus]) -> dg.SensorDefinition:
    """Build the sensor that reports what a command made live, so that the UI names what the ref names."""
    name, key, job = corpus.name, live_key(corpus.name), job_name("promote", corpus.name, corpora)

    @dg.sensor(
        name=f"{identifier(name)}_moved_live",
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Reports the live snapshot of corpus {name} where no run of Dagster made it live.",
    )
    def moved(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        store = Store(store_root())
        snapshot_id = store.ref(name, LIVE)
        event = context.instance.get_latest_materialization_event(key)
        shown = event.asset_materialization.metadata if event and event.asset_materialization else {}
        history = live_history(store, name)
        expected = {
            "snapshot_id": snapshot_id,
            **{each: history.get(each, "") for each in ("live since", _LIMITS, _LEFT)},
        }
        if snapshot_id is None or all(getattr(shown.get(each), "value", "") == expected[each] for each in expected):
            return dg.SkipReason("the UI shows what is live")
        metadata = live_metadata(store, name, job, judge_again(store, snapshot_id, live_proof(store, name)))
        tags = {DATA_VERSION_TAG: snapshot_id}
        return dg.SensorResult(asset_events=[dg.AssetMaterialization(key, metadata=metadata, tags=tags)])

    return moved


def live_metadata(store: Store, corpus: str, job: str, verdicts: Sequence[GateVerdict]) -> dict[str, Any]:
    """Build the metadata of what is live in a corpus; `job` is that which rolls back."""
    snapshot = open_snapshot(store, store.ref(corpus, LIVE) or "")
    card, page = describe(snapshot, corpus)
    history = live_history(store, corpus)
    before, moves = history["live before"], live_rows(store, corpus)
    why = " and a reason: it was rolled back from" if before in store.rolled_back(corpus) else ""
    return {
        "corpus": corpus,
        "snapshot_id": snapshot.snapshot_id,
        **history,
        **({"roll back": f"launch {job} with to: {before}{why}"} if is_id(before) and store.locate(before) else {}),
        **({"were live": table(moves)} if moves else {}),
        "card": dg.MetadataValue.md(card),
        "report": page_link(page),
        **snapshot_metadata(store, snapshot),
        "gates passed": summary(verdicts),
        "gates": table(verdict_rows(verdicts)),
    }


def live_history(store: Store, corpus: str) -> dict[str, str]:
    """Return since when and why the live snapshot of a corpus is live, and the id of the one before, as the history says."""
    *before, last = ({"new": "none"}, {}, *store.lives(corpus))[-2:]
    moves = store.moves(corpus, LIVE)
    limits = str((moves or [{}])[-1].get("other_limits", ""))
    return {
        "live since": str(last.get("when", "unknown")),
        "live before": str(before[0].get("new", "none")),
        "reason": str(last.get("reason", "")),
        **({_LIMITS: f"{limits}; {moves[-1]['reason']}"} if limits else {}),
        **({_LEFT: left} if (left := _left(store, corpus, _CANDIDATE)) else {}),
    }


def _left(store: Store, corpus: str, to: str) -> str:
    """Return why no build makes a snapshot live, that a person rolled back from, in words; the empty string for another."""
    if to == _CANDIDATE and store.ref(corpus, _CANDIDATE) is None:
        return ""
    snapshot_id = resolve_snapshot(store, corpus, to)
    found = rolled_back(store, corpus, snapshot_id)
    then = "live stays until another snapshot is the candidate, or the job that promotes is launched with a `reason`."
    return f"snapshot {snapshot_id[:12]} is not promoted: {found}; {then}" if found else ""


def live_rows(store: Store, corpus: str) -> list[dict[str, str]]:
    """List the last moves of `live` in a corpus, the newest first: since when, which snapshot, and why."""
    moves = [(entry["when"][:19], entry["new"], entry["reason"]) for entry in store.lives(corpus)[-NUM_LIVE - 1 :]]
    rows = [
        (when, f"{new[:12]}{'' if store.locate(new) else ', removed by gc'}", reason) for when, new, reason in moves
    ]
    return [dict(zip(("since", "snapshot", "reason"), row, strict=True)) for row in reversed(rows)]


def describe(snapshot: Snapshot, corpus: str) -> tuple[str, Path]:
    """Return the data card of a snapshot as Markdown, and the page of what became of each file, written into the store."""
    from pipeline.export.card import facts_of, markdown_card  # not before a snapshot is promoted: they load DuckDB

    page = snapshot.store.root / REPORTS / f"{corpus}-{snapshot.snapshot_id[:12]}.html"
    if not page.exists():
        from pipeline.lineage.report import report_corpus
        from pipeline.lineage.report_page import render_page  # a page that is there does not wait for Matplotlib

        page.parent.mkdir(parents=True, exist_ok=True)
        report = report_corpus(snapshot.store, corpus, _NUM_SAMPLES, snapshot.snapshot_id)
        replace(page, render_page(report).encode())
    return markdown_card(facts_of(snapshot)), page


def _freshness(corpus: Corpus) -> dg.FreshnessPolicy | None:
    age = corpus.max_age_hours
    return None if age is None else dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=age))
