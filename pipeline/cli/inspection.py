"""Commands that answer a question and change nothing: `show`, `why`, `report` and `diff` of a corpus, `gates` and `config`."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from pipeline.build.recipes import RECIPES
from pipeline.build.seen_red import GateSeenRed, seen_red
from pipeline.cli.console import gate_lines, plain_table, seen_red_tables
from pipeline.cli.declaration import Answer, add_corpus, command
from pipeline.contracts.gates import GATES
from pipeline.core.command_line import whole_number
from pipeline.core.errors import MissingError
from pipeline.core.params import fingerprint
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store


def _add_show_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", help="an object id, or nothing for the refs; with --structure, a source")
    parser.add_argument("path", nargs="?", help="with --structure: a file of the source")
    parser.add_argument("--structure", action="store_true", help="chunks, provenance and build context of SOURCE PATH")
    add_corpus(parser)


@command("show", "print an object, the refs and history of a corpus, or a file's structure", _add_show_arguments)
def _show(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    if options.structure != (options.path is not None):
        options.refuse("SOURCE PATH and --structure go together")
    if options.structure:
        from pipeline.lineage.show_file import file_structure, structure_lines

        structure = file_structure(store, options.corpus, options.what, options.path)
        person.print("\n".join(structure_lines(structure)), markup=False, highlight=False, soft_wrap=True)
        return 0, structure
    answer = _refs(options, store) if options.what is None else _stored(options, store)
    if not options.json:
        person.print_json(json.dumps(answer, default=str))
    return 0, answer


def _refs(options: argparse.Namespace, store: Store) -> dict[str, Any]:
    refs = store.refs(options.corpus)
    if not refs:
        known = ", ".join(store.corpora()) or "none yet"
        raise MissingError(f"corpus {options.corpus}", f"it has no refs in {store.root}", f"one of: {known}")
    return {"corpus": options.corpus, "refs": refs, "history": store.history(options.corpus)}


def _stored(options: argparse.Namespace, store: Store) -> dict[str, Any]:
    from pipeline.build.stage_objects import parts_of, report_of

    stored = store.read(store.ref(options.corpus, options.what) or options.what)
    answer = {"id": stored.object_id, **stored.manifest.as_json(), "verdicts": store.verdicts(stored.object_id)}
    answer |= {"parts": parts_of(stored)}
    if any(entry.name == "report.json" for entry in stored.manifest.files):
        answer |= {"report": asdict(report_of(stored))}
    return answer


def _add_why_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="name of the source")
    parser.add_argument("path", help="path of the file in the source")
    add_corpus(parser)


@command("why", "explain which stages kept or dropped a file, with the evidence", _add_why_arguments)
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
    return int(trail.lost), asdict(trail) | {"kept": trail.kept}


def _add_report_arguments(parser: argparse.ArgumentParser) -> None:
    add_corpus(parser)
    parser.add_argument("--out", type=Path, help="file of the page; reports/CORPUS.html in the store unless given")
    parser.add_argument("--samples", type=int, default=5, help="maximum number of samples per rule that dropped files")


@command("report", "report what happened to every file, as a page or as JSON", _add_report_arguments)
def _report(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    from pipeline.lineage.report import report_corpus
    from pipeline.lineage.report_page import render_page

    report = report_corpus(store, options.corpus, max(0, options.samples))
    if options.out is not None or not options.json:
        out = options.out or store.root / "reports" / f"{options.corpus}.html"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(render_page(report), encoding="utf-8")
        person.print(f"the report is {out}", markup=False, soft_wrap=True)
    return 0, report.as_json()


def _add_diff_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", help="live, candidate or a snapshot id")
    parser.add_argument("b", help="the other: live, candidate or a snapshot id")
    add_corpus(parser, text="the corpus of the refs `live` and `candidate`")
    parser.add_argument(
        "--documents", type=whole_number(0, 10**9), default=20, help="maximum number of documents to list"
    )


@command("diff", "list what changed between two snapshots, and why", _add_diff_arguments)
def _diff(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    from pipeline.lineage.diff import difference
    from pipeline.store.snapshot import resolve_snapshot

    a, b = (resolve_snapshot(store, options.corpus, name) for name in (options.a, options.b))
    found = difference(store, a, b, options.documents)
    person.print(plain_table("Totals", [{"snapshot": name} | row for name, row in found.totals.items()]))
    for title, rows in (("Made with", found.settings), ("Changes", found.causes), ("Documents", found.documents)):
        if rows:
            person.print(plain_table(title, rows))
    if not found.causes:
        person.print("no document differs")
    return 0, found.as_json()


def _add_gates_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpus", help="show too which offense turned each gate red in the last build of this corpus")


@command("gates", "list every gate, and with --corpus how it was last seen red", _add_gates_arguments)
def _gates(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    rows = [
        {
            "name": gate.name,
            "stage": gate.stage,
            "blocking": gate.blocking,
            "measure": gate.measure,
            "limit": f"{gate.limit.comparison} {gate.limit.value}",
            "why": gate.why,
        }
        for gate in GATES
    ]
    person.print("\n".join(gate_lines(GATES)), markup=False)
    if options.corpus is None:
        return 0, rows
    seen = _seen_red(store, options.corpus)
    person.print(*seen_red_tables(seen.values()))
    return 0, [row | {"seen_red": asdict(seen[str(row["name"])])} for row in rows]


def _seen_red(store: Store, corpus: str) -> dict[str, GateSeenRed]:
    from pipeline.lineage.queries import stage_object

    stored = stage_object(store, corpus, STAGES.names[-1])  # raises if the corpus was not built that far
    return {each.gate: each for each in seen_red(store, stored.object_id)}


def _add_config_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--recipe", default="quick", help=f"one of {', '.join(RECIPES.names)}")


@command("config", "print the resolved configuration of a recipe and its fingerprint", _add_config_arguments)
def _config(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    recipe = RECIPES[options.recipe]
    params = recipe.params.model_dump(mode="json")
    prints = {name: fingerprint(recipe.params.of_stage(name)) for name in STAGES.names}
    person.print_json(json.dumps(params))
    return 0, {"recipe": recipe.name, "fingerprint": fingerprint(recipe.params), "stages": prints, "params": params}
