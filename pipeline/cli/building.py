"""Commands that make snapshots: `build` and `promote`."""

import argparse
import os
import textwrap
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pipeline.build.build import BuildRequest, open_build, refuse_unusable
from pipeline.build.engines.engine_kinds import ENGINES
from pipeline.build.recipes import corpora_file, decisions_of, expected_params, pins_of
from pipeline.build.run_stage import StageResult, run_stages
from pipeline.build.stage_objects import all_limits
from pipeline.cli.console import PersonConsole, StageBars, seen_red_tables, verdict_table, waterfall_table
from pipeline.cli.declaration import Answer, add_corpus, add_recipe, asked_recipe, command
from pipeline.contracts.gates import summary
from pipeline.core.command_line import amount, file_path, given_reason, shell_command, whole_number
from pipeline.core.table_names import DOCUMENTS
from pipeline.stages.stages import STAGES, stage_with
from pipeline.store.refs import LAST, LIVE, WITH_BUILD
from pipeline.store.store import Store
from pipeline.store.store_layout import is_id


def add_build_arguments(parser: argparse.ArgumentParser, recipe: str | None = "quick") -> None:
    """Add the arguments of `run_build`."""
    add_recipe(parser, recipe)
    decisions = "a file of decisions about files; decisions.toml beside the pins unless given"
    parser.add_argument("--decisions", type=file_path, help=decisions)
    parser.add_argument("--corpus", help="name of the corpus that is written; the recipe's name unless given")
    parser.add_argument(
        "--workers", type=whole_number(1, 256), default=2, help="processes; they do not change any byte"
    )
    where = "what makes the parts: processes of this machine, or the nodes of a Ray cluster (docs/scale.md); the bytes are the same"
    parser.add_argument("--engine", choices=ENGINES.names, default=ENGINES.names[0], help=where)
    parser.add_argument(
        "--address", default="", metavar="HOST:PORT", help="a cluster that is there already, for `--engine ray`"
    )
    until = "the last stage to run; gates of later stages, such as the proofs of verify, are then not judged"
    parser.add_argument("--until", choices=STAGES.names, default=STAGES.names[-1], help=until)
    parser.add_argument("--offline", action="store_true", help="use only archives that are in the store")
    parser.add_argument("--promote", action="store_true", help="make the candidate live if every gate passes")
    parser.add_argument("--no-report", action="store_true", help="write no report page; with --json none is written")
    parser.add_argument("--wait", type=amount, default=3600.0, help="seconds to wait for another build of the corpus")


def given_build_options(options: argparse.Namespace) -> list[str]:
    """List the options of a build, but its recipe, that have another value than without them, as they are typed."""
    parser = argparse.ArgumentParser()
    add_build_arguments(parser, recipe=None)
    defaults = vars(parser.parse_args([]))
    given = (name for name, value in defaults.items() if name != "recipe" and getattr(options, name) != value)
    return [f"--{name.replace('_', '-')}" for name in given]


def _add_build_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_arguments(parser)
    parser.add_argument(
        "--reason",
        type=given_reason,
        help="with --promote: kept in the history; required where limits are not the recipe's",
    )


@command("build", "run the stages and make a candidate snapshot", _add_build_arguments)
def _build(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    if options.reason is not None and not options.promote:
        options.refuse("found --reason without --promote; expected both, as a reason is of a promotion")
    return run_build(options, store, person, options.reason)


def run_build(options: argparse.Namespace, store: Store, person: PersonConsole, reason: str | None = None) -> Answer:
    """Run the stages, and promote the candidate with `--promote`, for a reason where its limits are not the recipe's."""
    recipe = asked_recipe(options)
    if options.promote and options.until != STAGES.names[-1]:
        found = f"found --promote with --until {options.until}"
        options.refuse(f"{found}; expected one of the two, as {STAGES.names[-1]} alone makes a candidate")
    corpus = options.corpus = recipe.name if options.corpus is None else options.corpus
    expected = expected_params(corpus, corpora_file(os.environ)) or asked_recipe(options, with_set=False).params
    own, limits = all_limits(recipe.params.of_stage), all_limits(expected.of_stage)
    order = BuildRequest(
        corpus=corpus,
        params=recipe.params,
        pins=pins_of(recipe),
        who=f"`build` (process {os.getpid()})",
        num_workers=options.workers,
        engine=options.engine,
        address=options.address,
        offline=options.offline,
        wait_seconds=options.wait,
        decisions=decisions_of(recipe, decisions_file=options.decisions),
        recipe_limits={name: value for name, value in limits.items() if own[name] != value},
    )
    refuse_unusable(order.params, order.pins)
    started = time.monotonic()
    results, rows = _run_stages(order, options.until, store, person, not (options.json or options.no_report))
    results[-1].refuse_blocked(corpus)
    snapshot_id = next((result.snapshot_id for result in results if result.snapshot_id), None)
    if snapshot_id is not None:
        from pipeline.build.promotion import promote, rolled_back
    if snapshot_id is not None and options.promote:
        promote(store, corpus, snapshot_id, reason, options.workers, expected, WITH_BUILD, is_of_last_build=True)
    promoted = snapshot_id is not None and store.ref_text(corpus, LIVE) == snapshot_id
    if snapshot_id is not None:
        left = rolled_back(store, corpus, snapshot_id)
        because = ("--reason", "REASON") if left else ()
        promotion = shell_command("pipeline promote", *because, corpus=corpus, store=options.given_store)
        then = "live" if promoted else f"the candidate; {f'{left}; ' if left else ''}`{promotion}` makes it live"
        person.answer(f"snapshot {snapshot_id} is {then}", markup=False)
    return 0, {
        "corpus": corpus,
        "snapshot_id": snapshot_id,
        "promoted": promoted,
        "seconds": round(time.monotonic() - started, 3),
        "stages": rows,
    }


def _run_stages(
    order: BuildRequest, until: str, store: Store, person: PersonConsole, with_report: bool
) -> tuple[list[StageResult], list[dict[str, Any]]]:
    """Run the stages and tell their results while the corpus is locked: a build that waits for it moves its refs."""
    bars = StageBars(person, order.num_workers)
    results: list[StageResult] = []
    rows: list[dict[str, Any]] = []
    with open_build(order, store, bars.progress, lambda who: person.print(f"waiting for {who}")) as build:
        with bars:
            before = time.monotonic()
            for result in run_stages(build, until):
                seconds = time.monotonic() - before
                bars.finished(result, seconds)
                results.append(result)
                rows.append(_stage_row(result, seconds))
                before = time.monotonic()
        _print_results(person, results)
        if with_report:
            _write_report(store, order.corpus, results, person)
    return results, rows


def _stage_row(result: StageResult, seconds: float) -> dict[str, Any]:
    return {
        "name": result.stage,
        "object_id": result.object_id,
        **asdict(result.report),
        "seconds": round(seconds, 3),
        "unchanged": result.unchanged,
        "warnings": list(result.warnings),
    }


def _write_report(store: Store, corpus: str, results: Sequence[StageResult], person: PersonConsole) -> None:
    """Write the report page of a build that has documents, and print its path."""
    if stage_with(DOCUMENTS).name not in {result.stage for result in results}:
        return
    from pipeline.lineage.report_page import write_report

    out = write_report(store, corpus, LAST if results[-1].blocked else None)
    person.answer(f"the report is {out}", markup=False)


def _print_results(person: PersonConsole, results: Sequence[StageResult]) -> None:
    person.answer(waterfall_table(results))
    for warning in (warning for result in results for warning in result.warnings):
        person.print(f"warning: {warning}", style="yellow", markup=False)
    verdicts = [verdict for result in results for verdict in result.verdicts]
    person.answer(summary(verdicts))
    failing = [verdict for verdict in verdicts if not verdict.passed]
    if failing:
        person.answer(verdict_table(failing))


def _add_promote_arguments(parser: argparse.ArgumentParser) -> None:
    add_corpus(parser, text="the corpus whose live snapshot moves")
    parser.add_argument("--to", default="candidate", help="a snapshot id, to roll back too; the candidate unless given")
    text = "kept in the history; required where limits are not those of the recipe, or what was never of the corpus"
    parser.add_argument("--reason", type=given_reason, help=text)
    parser.add_argument("--workers", type=whole_number(1, 256), default=2, help="processes that make the parts again")


@command("promote", "judge a snapshot again and make it live", _add_promote_arguments)
def _promote(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    from pipeline.build.promotion import promote, refuse_foreign
    from pipeline.lineage.stored_build import candidate_of_before

    refuse_foreign(store, options.corpus, options.to, options.reason)
    if options.to == "candidate" and (sentence := candidate_of_before(store, options.corpus)):
        person.print(sentence, markup=False, style="yellow")
    expected = expected_params(options.corpus, corpora_file(os.environ))
    done = promote(store, options.corpus, options.to, options.reason, options.workers, expected, "promoted by hand")
    for limit in done.other_limits:
        person.print(f"not the recipe's limit: {limit.text}", markup=False)
    person.print(*seen_red_tables(done.seen_red))
    if done.old is not None and not is_id(done.old):
        person.print(f"ref {done.corpus}/live was {done.old}, not where the history says: it is repaired by this move")
    person.answer(f"corpus {done.corpus}: live {'stays' if done.unchanged else 'is now'} {done.new}")
    if done.unchanged and options.reason:
        person.answer("the history keeps the reason" if done.is_logged else "the reason is not kept: nothing moved")
    by = (
        f"by code {done.replayed_by[:12]}"
        if done.replayed_by
        else "by its own build alone: the next promotion makes them again"
    )
    person.answer(f"its parts were made {'again ' if done.replayed_by else ''}{by}")
    if done.without_archive:
        names = ", ".join(done.without_archive)
        person.answer(f"not compared with archives, which the store has not: {textwrap.shorten(names, 200)}")
    return 0, asdict(done) | {"unchanged": done.unchanged}
