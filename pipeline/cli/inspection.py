"""Commands that answer a question and change nothing: `show`, `why`, `report` and `diff` of a corpus, `gates` and `config`."""

import argparse
import json
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from pipeline.build.build import refuse_unusable
from pipeline.build.recipes import Recipe, pins_of, recipe_document, recipe_of, recipe_values
from pipeline.build.seen_red import seen_red
from pipeline.cli.console import FittedTable, PersonConsole, gate_lines, seen_red_tables, verdict_table
from pipeline.cli.declaration import Answer, add_build, add_corpus, add_recipe, asked_recipe, command, say_what_blocks
from pipeline.cli.object_lines import object_lines, ref_lines
from pipeline.contracts.gates import GATES, GateVerdict
from pipeline.core.command_line import output_path, whole_number
from pipeline.core.errors import StoreError
from pipeline.core.params import fingerprint
from pipeline.core.settings.fields import schema_of
from pipeline.core.settings.overrides import changed_fields, difference_line
from pipeline.stages.stages import STAGES
from pipeline.store.named_objects import missing_corpus
from pipeline.store.store import Store


def _add_show_arguments(parser: argparse.ArgumentParser) -> None:
    what = "a ref, an id or its first digits, RUN@STEP, or nothing for the refs; with --structure, a source"
    parser.add_argument("what", nargs="?", help=what)
    parser.add_argument("path", nargs="?", help="with --structure: a file of the source")
    parser.add_argument("--structure", action="store_true", help="chunks, provenance and build context of SOURCE PATH")
    add_build(parser)


@command("show", "describe the refs of a corpus, an object, or a file's structure", _add_show_arguments)
def _show(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    if options.structure != (options.path is not None):
        options.refuse("found one of SOURCE PATH and --structure; expected both, or none")
    if options.structure:
        from pipeline.lineage.show_file import file_structure, structure_lines

        say_what_blocks(person, store, options)
        structure = file_structure(store, options.corpus, options.what, options.path, options.of)
        person.answer("\n".join(structure_lines(structure)), markup=False)
        return 0, structure
    what = options.of if options.what is None else options.what
    if what is None:
        with suppress(StoreError):  # refs are listed as they are: what they name may be damaged
            say_what_blocks(person, store, options)
    answer = _refs(options, store) if what is None else _stored(what, options, store)
    person.answer("\n".join(ref_lines(answer) if what is None else object_lines(answer)), markup=False)
    return 0, answer


def _refs(options: argparse.Namespace, store: Store) -> dict[str, Any]:
    refs = store.refs(options.corpus)
    if not refs:
        raise missing_corpus(store, options.corpus)
    lives = [entry["new"] for entry in store.lives(options.corpus)]
    gone = sorted({name for name in lives if store.locate(name) is None})
    return {
        "corpus": options.corpus,
        "refs": refs,
        "history": store.history(options.corpus),
        "lives": lives,
        "gone": gone,
        "rolled_back": store.rolled_back(options.corpus),
        "withdrawn": _withdrawn_in(store, refs.values()),
    }


def _withdrawn_in(store: Store, object_ids: Collection[str]) -> dict[str, list[str]] | None:
    """Return which of these snapshots hold what is withdrawn, and by what; None where a damaged log does not tell."""
    with suppress(StoreError):
        withdrawn = store.withdrawn_snapshots().items()
        found = {name: [text for text, holding in withdrawn if name in holding.held_by] for name in object_ids}
        return {name: texts for name, texts in found.items() if texts}
    return None


def _stored(what: str, options: argparse.Namespace, store: Store) -> dict[str, Any]:
    from pipeline.build.stage_objects import failures_of, parts_of, report_of
    from pipeline.store.named_objects import resolve

    stored = store.read(resolve(store, options.corpus, what))
    answer = {"id": stored.object_id, **stored.manifest.as_json(), "verdicts": store.verdicts(stored.object_id)}
    answer |= {"withdrawn": _withdrawn_in(store, [stored.object_id])}
    answer |= {"parts": parts_of(stored), "refs": store.named_by().get(stored.object_id, [])}
    answer |= {"live_limits": store.live_limits(stored.object_id), "failures": failures_of(stored)}
    if any(entry.name == "report.json" for entry in stored.manifest.files):
        answer |= {"report": asdict(report_of(stored))}
    return answer


def _add_why_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="name of the source")
    parser.add_argument("path", help="path of the file in the source")
    add_build(parser)


@command("why", "explain which stages kept or dropped a file, with the evidence", _add_why_arguments)
def _why(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    from pipeline.lineage.why import why

    say_what_blocks(person, store, options)
    trail = why(store, options.corpus, options.source, options.path, options.of)
    is_kept_so_far = trail.steps[-1].verdict == "kept" and not trail.steps[-1].evidence.get("is_evidence")
    place = "in the snapshot" if trail.kept else "not in the snapshot"
    if is_kept_so_far and not trail.kept:
        place = f"in no snapshot: the build ends with {trail.build['stage']}, which kept it"
    person.answer(f"{trail.source}/{trail.path} is {place}", style="bold", markup=False)
    for step in trail.steps:
        person.answer(f"  {step.stage:<10} {step.verdict} {step.reason}".rstrip(), markup=False)
        for name, value in step.evidence.items():
            for each in value if name == "filters" else [value]:
                if each not in (None, "", []):
                    text = str(each).replace("\n", f"\n{'':17}")
                    person.answer(f"{'':15}{name}: {text}", markup=False)
    for line in trail.withdrawn:
        person.answer(f"  withdrawn  {line}", markup=False)
    return int(trail.lost), asdict(trail) | {"kept": trail.kept}


def _add_report_arguments(parser: argparse.ArgumentParser) -> None:
    add_build(parser)
    parser.add_argument(
        "--out",
        type=output_path,
        help="file of the page, which is replaced; reports/CORPUS.html in the store unless given",
    )
    parser.add_argument(
        "--samples", type=whole_number(0, 1000), default=5, help="maximum number of samples per rule that dropped files"
    )


@command("report", "report what happened to every file, as a page or as JSON", _add_report_arguments)
def _report(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    from pipeline.lineage.report import report_corpus
    from pipeline.lineage.report_page import render_page
    from pipeline.lineage.stored_build import report_path

    say_what_blocks(person, store, options)
    report = report_corpus(store, options.corpus, max(0, options.samples), options.of)
    if options.out is not None or not options.json:
        out = options.out
        if out is None:  # a folder that a person names is theirs to make
            out = report_path(store, options.corpus, options.of)
            out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(render_page(report), encoding="utf-8")
        person.answer(f"the report is {out}", markup=False)
    return 0, report.as_json()


def _add_diff_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", help="live, candidate, last, or the id of a snapshot or a stage's output")
    parser.add_argument("b", help="the other, likewise")
    add_corpus(parser, text="the corpus of the refs")
    parser.add_argument(
        "--documents", type=whole_number(0, 10**9), default=20, help="maximum number of documents to list"
    )


@command("diff", "list what changed between two builds, and why", _add_diff_arguments)
def _diff(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    from pipeline.lineage.diff import difference
    from pipeline.lineage.stored_build import stored_build

    builds = [stored_build(store, options.corpus, name) for name in (options.a, options.b)]
    for build in builds:
        if (sentence := build.sentence()) is not None:
            person.print(sentence, markup=False, style="yellow")
    found = difference(builds[0], builds[1], options.documents)
    person.answer(FittedTable("Totals", [{"build": name} | row for name, row in found.totals.items()]))
    tables = {
        "Made with": found.settings,
        "Dropped": found.drops,
        "Changes": found.causes,
        "Documents": found.documents,
    }
    for title, rows in tables.items():
        if rows:
            person.answer(FittedTable(title, rows))
    if not found.causes:
        others = ["what they were made with does: see `Made with`"] if found.settings else []
        others += ["what was dropped does: see `Dropped`"] if found.drops else []
        person.answer(", but ".join(["no document that is kept differs", " and ".join(others)][: 1 + bool(others)]))
    return 0, found.as_json()


def _add_gates_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpus", help="show too which offense turned each gate red in the last build of this corpus")
    parser.add_argument("--of", metavar="BUILD", help="with --corpus: another build, as `why --of` names it")


@command("gates", "list every gate, and with --corpus how it was last seen red", _add_gates_arguments)
def _gates(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
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
    if options.corpus is None and options.of is not None:
        options.refuse("found --of without --corpus; expected both, as a build is of a corpus")
    if options.corpus is None:
        person.answer("\n".join(gate_lines(GATES)), markup=False)
        return 0, rows
    from pipeline.lineage.report_evidence import gate_rows
    from pipeline.lineage.stored_build import stored_build

    build = stored_build(store, options.corpus, options.of)
    verify = build.stages.get(STAGES.names[-1]) if build.stages else build.stage(STAGES.names[-1])
    seen = {each.gate: each for each in seen_red(store, verify.object_id if verify else None)}
    judged = {row["gate"]: row for row in gate_rows(build)}
    person.answer("\n".join(gate_lines(GATES)), markup=False)
    person.answer(*seen_red_tables(seen.values()))
    if verify is None:
        verdicts = [{name: row[name] for name in GateVerdict.__dataclass_fields__} for row in judged.values()]
        person.answer(verdict_table([GateVerdict(**each) for each in verdicts], "Judged"))
        number = f"{len(GATES) - len(judged)} gates were not judged, and no offenses were sent"
        person.answer(f"this build of {options.corpus} ended at {[*build.stages][-1]}: {number}", markup=False)
    found = {
        name: {"seen_red": asdict(seen[name]) if name in seen else None, "verdict": judged.get(name)}
        for name in GATES.names
    }
    return 0, [row | found[str(row["name"])] for row in rows]


def _add_config_arguments(parser: argparse.ArgumentParser) -> None:
    add_recipe(parser)
    diff = "print what differs from this recipe, a name or a file, and which stages are made anew for that"
    parser.add_argument("--diff", metavar="RECIPE", help=diff)
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of a recipe's file, for editors")


@command(
    "config",
    "print the resolved configuration of a recipe and its fingerprint, or what differs from another recipe",
    _add_config_arguments,
    holds_store=False,
)
def _config(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    if options.schema and (options.set or options.diff):
        options.refuse(
            f"found --schema with {'--set' if options.set else '--diff'}; expected it alone, as it is of all recipes"
        )
    if options.schema:
        schema = schema_of(recipe_document(), "recipe")
        person.answer(json.dumps(schema, indent=1), markup=False)
        return 0, schema
    recipe = asked_recipe(options)
    other = None if options.diff is None else recipe_of(options.diff)
    refuse_unusable(recipe.params, pins_of(recipe))
    if other is not None:
        return 0, _difference(recipe, other, person)
    params = recipe.params.model_dump(mode="json")
    prints = {name: fingerprint(recipe.params.of_stage(name)) for name in STAGES.names}
    person.answer(json.dumps(params, indent=1), markup=False)
    return 0, {"recipe": recipe.name, "fingerprint": fingerprint(recipe.params), "stages": prints, "params": params}


def _difference(recipe: Recipe, other: Recipe, person: PersonConsole) -> dict[str, Any]:
    """Print the fields of a recipe that another has otherwise, and what a build makes anew for them."""
    from pipeline.lineage.made_anew import made_anew

    found = changed_fields(recipe_values(other), recipe_values(recipe))
    for name, (before, now) in found.items():
        person.answer(difference_line(name, before, now), markup=False)
    anew = made_anew(other, recipe)
    person.answer("\n".join(anew.sentences()), markup=False)
    return {"recipe": recipe.name, "differs_from": other.name, "differences": found, **asdict(anew)}
