"""The command line: `python -m pipeline COMMAND`; `--help` lists the commands.

Machine-readable output goes to stdout with `--json`, people's to stderr. For the exit codes see `pipeline.core.command_line`.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from pipeline.build.build import BuildOrder, open_build
from pipeline.build.recipes import RECIPES, ROOT, params_of, pins_of, recipe_named
from pipeline.build.stages import STAGE_NAMES, StageResult, parts_of, report_of, run_stages
from pipeline.cli import console, provenance
from pipeline.core.command_line import Parser, amount, run_command, whole_number
from pipeline.core.errors import MissingError
from pipeline.core.params import fingerprint
from pipeline.export.export_formats import FORMATS
from pipeline.store.fsck import fsck
from pipeline.store.store import Store

# A handler imports what it alone needs: `why` answers at once, and does not wait for the libraries of the others.
Answer = tuple[int, dict[str, Any] | list[Any]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. A user's mistake is one line on stderr, never a traceback."""
    person = console.person()

    def run(options: argparse.Namespace) -> Answer:
        answer: Answer = options.run(options, Store(Path(options.store)), person)
        return answer

    def say(text: str) -> None:
        person.print(text, markup=False, style="red")

    return run_command(_parser(), sys.argv[1:] if arguments is None else arguments, run, say)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m pipeline", description="From pinned source to promoted snapshots.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_making(commands)
    _add_asking(commands)
    _add_keeping(commands)
    _add_giving(commands)
    return parser


def _add_making(commands: Any) -> None:
    """The commands that make something: a snapshot, a live ref, a pin."""
    _add_build(_command(commands, "build", _build, "run the stages and end at the candidate snapshot"), "quick")
    move = _command(commands, "promote", _promote, "judge a snapshot again and make it live")
    move.add_argument("--corpus", "--recipe", default="quick", help="the corpus whose live snapshot moves")
    move.add_argument(
        "--to", default="candidate", help="a snapshot id; the candidate unless given. Rolling back is the same move"
    )
    move.add_argument("--reason", default="promoted by hand", help="why; kept in the history")
    pin = _command(
        commands,
        "pin",
        _pin,
        "print a pins file entry with the digest that was seen: of a release, or of your own code",
    )
    pin.add_argument("name", help="a source of the catalog, whose release is asked for; with PATH, any name")
    pin.add_argument("path", type=Path, nargs="?", help="a folder, an archive or a .jsonl file of your own")
    pin.add_argument("--version", help="the release; the newest stable one unless given")
    pin.add_argument("--license", help="SPDX expression that the source as a whole is under")


def _add_asking(commands: Any) -> None:
    """The commands that answer a question and change nothing."""
    _command(commands, "gates", _gates, "list every gate")
    config = _command(commands, "config", _config, "print the resolved configuration of a recipe and its fingerprint")
    config.add_argument("--recipe", default="quick")
    _add_show(commands)
    explain = _command(commands, "why", _why, "say where a file went and on what evidence")
    explain.add_argument("source")
    explain.add_argument("path")
    explain.add_argument("--corpus", "--recipe", default="quick")
    tell = _command(commands, "report", _report, "what became of every file: a page to open, or JSON")
    tell.add_argument("--corpus", "--recipe", default="quick")
    tell.add_argument(
        "--out", type=Path, help="where the page is written; CORPUS.html beside the store's objects unless given"
    )
    tell.add_argument("--samples", type=int, default=5, help="samples of what a rule dropped, at most")
    provenance.add_diff(_command(commands, "diff", provenance.run_diff, "what changed between two snapshots, and why"))
    provenance.add_card(
        _command(
            commands, "card", provenance.run_card, "describe a snapshot: data card, Croissant, SPDX bill of materials"
        )
    )


def _add_keeping(commands: Any) -> None:
    """The commands that keep the store sound, small and rightful."""
    _command(commands, "fsck", _fsck, "verify every byte in the store")
    away = _command(
        commands, "withdraw", _withdraw, "keep something out of every corpus, rebuild one, say who holds it"
    )
    provenance.add_withdraw(away)
    _add_build(away, None)
    provenance.add_gc(_command(commands, "gc", provenance.run_gc, "remove what no ref leads to"))


def _add_giving(commands: Any) -> None:
    """The commands that write files for others."""
    words = _command(commands, "vocabulary", _vocabulary, "describe a vocabulary, or train one from a built corpus")
    words.add_argument("name", nargs="?", default="cpp-32768")
    words.add_argument("--train", action="store_true", help="train it from the kept training documents of --corpus")
    words.add_argument("--size", type=int, help="number of entries, with --train")
    words.add_argument("--corpus", "--recipe", default="full")
    words.add_argument("--out", type=Path, help="folder to write it into, with --train")
    words.add_argument("--report", action="store_true", help="what it makes of the documents of --corpus")
    give = _command(commands, "export", _export, "write a snapshot for other tools")
    give.add_argument("format", choices=FORMATS)
    give.add_argument("--corpus", "--recipe", default="quick", help="the corpus whose refs `live` and `candidate` are")
    give.add_argument("--snapshot", default="live", help="live, candidate or a snapshot id")
    give.add_argument("--out", type=Path, required=True, help="an empty or a new folder")


def _add_build(parser: argparse.ArgumentParser, recipe: str | None) -> None:
    parser.add_argument("--recipe", default=recipe, help=f"one of {', '.join(RECIPES)}")
    parser.add_argument("--pins", type=Path, help="a pins file to build in place of the recipe's slice")
    parser.add_argument("--corpus", help="name of the corpus that is written; the recipe's name unless given")
    parser.add_argument(
        "--workers", type=whole_number(1, 256), default=2, help="processes; the bytes are always the same"
    )
    parser.add_argument("--until", choices=STAGE_NAMES, default=STAGE_NAMES[-1], help="the last stage to run")
    parser.add_argument("--offline", action="store_true", help="use archives in the store only")
    parser.add_argument(
        "--evaluation-items", type=Path, help="a folder of JSONL files: documents that hold a solution are dropped"
    )
    parser.add_argument("--promote", action="store_true", help="make the candidate live if every gate passes")
    parser.add_argument("--wait", type=amount, default=3600.0, help="seconds to wait for another build of the corpus")


def _add_show(commands: Any) -> None:
    show = _command(commands, "show", _show, "print an object, the refs and history of a corpus, or a file's structure")
    show.add_argument("what", nargs="?", help="an object id, or nothing for the refs; with --structure, a source")
    show.add_argument("path", nargs="?", help="with --structure: a file of the source")
    show.add_argument("--structure", action="store_true", help="chunks, provenance and build context of SOURCE PATH")
    show.set_defaults(refuse=show.error)
    show.add_argument("--corpus", "--recipe", default="quick")


def _command(
    commands: Any, name: str, run: Callable[[argparse.Namespace, Store, Console], Answer], help_text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help_text, description=help_text)
    parser.add_argument(
        "--store", default=os.environ.get("SLUICE_STORE", str(ROOT / "store")), help="where the store lies"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON value on stdout")
    parser.set_defaults(run=run)
    return parser


def _build(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    recipe = recipe_named(options.recipe)
    corpus = options.corpus or recipe.name
    order = BuildOrder(
        corpus=corpus,
        params=params_of(recipe, options.pins, options.evaluation_items),
        pins=pins_of(recipe, options.pins),
        who=f"`build` (process {os.getpid()})",
        num_workers=options.workers,
        offline=options.offline,
        wait_seconds=options.wait,
    )
    started = time.monotonic()
    results: list[StageResult] = []
    rows: list[dict[str, Any]] = []
    with (
        console.StageBars(person) as bars,
        open_build(order, store, bars.progress, lambda who: person.print(f"waiting for {who}")) as build,
    ):
        before = time.monotonic()
        for result in run_stages(build, options.until):
            seconds = time.monotonic() - before
            bars.finished(result, seconds)
            results.append(result)
            rows.append(_stage_row(result, seconds))
            before = time.monotonic()
    _print_results(person, results)
    results[-1].refuse_blocked(corpus)
    snapshot_id = results[-1].snapshot_id
    if snapshot_id is not None and options.promote:
        from pipeline.build.promotion import promote

        promote(store, corpus, snapshot_id, "build --promote")
    promoted = snapshot_id is not None and store.ref_text(corpus, "live") == snapshot_id
    if snapshot_id is not None:
        person.print(f"snapshot {snapshot_id} is {'live' if promoted else 'the candidate; `promote` makes it live'}")
    return 0, {
        "corpus": corpus,
        "snapshot_id": snapshot_id,
        "promoted": promoted,
        "seconds": round(time.monotonic() - started, 3),
        "stages": rows,
    }


def _print_results(person: Console, results: Sequence[StageResult]) -> None:
    person.print(console.waterfall(results))
    failing = [verdict for result in results for verdict in result.verdicts if not verdict.passed]
    num_gates = sum(len(result.verdicts) for result in results)
    person.print(f"{num_gates - len(failing)} of {num_gates} gates passed")
    if failing:
        person.print(console.verdict_table(failing))


def _stage_row(result: StageResult, seconds: float) -> dict[str, Any]:
    return {
        "name": result.stage,
        "object_id": result.object_id,
        "rows_in": result.report.rows_in,
        "rows_out": result.report.rows_out,
        "dropped": dict(result.report.dropped),
        "num_bytes_in": result.report.num_bytes_in,
        "num_bytes_out": result.report.num_bytes_out,
        "measures": dict(result.report.measures),
        "seconds": round(seconds, 3),
        "unchanged": result.unchanged,
    }


def _promote(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    from pipeline.build.promotion import promote

    done = promote(store, options.corpus, options.to, options.reason)
    person.print(f"corpus {done.corpus}: live {'stays' if done.unchanged else 'is now'} {done.new}")
    verdicts = [verdict.as_json() for verdict in done.verdicts]
    return 0, {
        "corpus": done.corpus,
        "old": done.old,
        "new": done.new,
        "unchanged": done.unchanged,
        "verdicts": verdicts,
    }


def _gates(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    rows = console.gate_rows()
    person.print(console.plain_table("Gates", rows))
    return 0, rows


def _config(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    recipe = recipe_named(options.recipe)
    params = recipe.params.model_dump(mode="json")
    prints = {name: fingerprint(getattr(recipe.params, name)) for name in STAGE_NAMES}
    person.print_json(json.dumps(params))
    return 0, {"recipe": recipe.name, "fingerprint": fingerprint(recipe.params), "stages": prints, "params": params}


def _show(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    answer: dict[str, Any]
    if options.structure != (options.path is not None):
        options.refuse("SOURCE PATH and --structure go together")
    if options.structure:
        from pipeline.lineage.show_file import file_structure, structure_lines

        structure = file_structure(store, options.corpus, options.what, options.path)
        person.print("\n".join(structure_lines(structure)), markup=False, highlight=False, soft_wrap=True)
        return 0, structure
    if options.what is None:
        refs = store.refs(options.corpus)
        if not refs:
            known = ", ".join(store.corpora()) or "none yet"
            raise MissingError(f"corpus {options.corpus}", f"it has no refs in {store.root}", f"one of: {known}")
        answer = {
            "corpus": options.corpus,
            "refs": refs,
            "history": store.history(options.corpus),
        }
    else:
        stored = store.read(store.ref(options.corpus, options.what) or options.what)
        answer = {"id": stored.object_id, **stored.manifest.as_json(), "verdicts": store.verdicts(stored.object_id)}
        answer |= {"parts": parts_of(stored)}
        if any(entry.name == "report.json" for entry in stored.manifest.files):
            answer |= {"report": asdict(report_of(stored))}
    if not options.json:
        person.print_json(json.dumps(answer, default=str))
    return 0, answer


def _why(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    from pipeline.lineage.why import why

    trail = why(store, options.corpus, options.source, options.path)
    person.print(
        f"{trail.source}/{trail.path} is {'in' if trail.kept else 'not in'} the snapshot", style="bold", markup=False
    )
    for step in trail.steps:
        person.print(f"  {step.stage:<10} {step.verdict} {step.reason}".rstrip(), markup=False)
        for name, value in step.evidence.items():
            if value not in (None, "", []):
                person.print(f"               {name}: {value}", markup=False)
    return 0, asdict(trail) | {"kept": trail.kept}


def _report(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    # Imported here: a plotting library is nothing that the other commands should wait for.
    from pipeline.lineage.report import report_corpus
    from pipeline.lineage.report_page import render_page

    report = report_corpus(store, options.corpus, max(0, options.samples))
    if options.out is not None or not options.json:
        out = options.out or store.root / "reports" / f"{options.corpus}.html"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(render_page(report), encoding="utf-8")
        person.print(f"the report lies at {out}", markup=False, soft_wrap=True)
    return 0, report.as_json()


def _fsck(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    if not store.root.is_dir():
        raise MissingError(f"store {store.root}", "there is no such folder", "", "Correct --store, or build first.")
    problems = fsck(store)
    for problem in problems:
        person.print(problem, markup=False, style="red")
    person.print(f"{len(problems)} problems in {store.root}")
    return int(bool(problems)), {"problems": problems}


def _vocabulary(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    from pipeline.lineage.corpus_texts import corpus_texts, training_texts
    from pipeline.lineage.vocabulary_report import vocabulary_report
    from pipeline.tokenize.vocabulary import load_vocabulary, write_vocabulary

    if options.report:
        report = vocabulary_report(load_vocabulary(options.name), *corpus_texts(store, options.corpus))
        person.print(console.plain_table(f"Vocabulary {options.name} on corpus {options.corpus}", report["kinds"]))
        person.print_json(json.dumps({name: value for name, value in report.items() if name != "kinds"}))
        return 0, report
    if options.train:
        if options.out is None or options.size is None:
            raise MissingError("vocabulary --train", "--out or --size is missing", "both", "See `vocabulary --help`.")
        texts, trained_on = training_texts(store, options.corpus)
        write_vocabulary(options.out, options.name, texts, options.size, trained_on)
    answer = load_vocabulary(options.name, options.out.parent if options.train else None).as_json()
    person.print_json(json.dumps(answer))
    return 0, answer


def _export(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    from pipeline.export.export import export
    from pipeline.store.snapshot import open_snapshot, resolve

    snapshot = open_snapshot(store, resolve(store, options.corpus, options.snapshot))
    answer = export(snapshot, options.format, options.out)
    person.print(f"snapshot {snapshot.snapshot_id[:12]} as {options.format} in {options.out}: {answer['written']}")
    return 0, answer


def _withdraw(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    answer = provenance.run_withdraw(options, store, person)
    if options.recipe is None or options.selector is None:
        return 0, answer
    code, built = _build(options, store, person)
    return code, answer | {"build": built}


def _pin(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    from pipeline.collect import propose_pin

    if options.path is not None:
        proposal = propose_pin.propose_own(options.name, options.path.resolve(), options.license or "NOASSERTION")
    else:
        shelf = propose_pin.Shelf(store.partial_blob(f"pin-{options.name}"), store.put_blob)
        proposal = propose_pin.propose_cataloged(options.name, options.version, options.license, shelf)
    if not options.json:
        print(proposal.as_toml())
    for note in proposal.notes:
        person.print(note, markup=False)
    return 0, proposal.entry


if __name__ == "__main__":
    sys.exit(main())
