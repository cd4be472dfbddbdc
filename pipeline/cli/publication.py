"""Commands that write files for others: `export`, `card` and `vocabulary`."""

import argparse
import json

from pipeline.cli.console import FittedTable, PersonConsole
from pipeline.cli.declaration import Answer, add_build, add_snapshot, command, plain, say_what_blocks
from pipeline.core.command_line import output_path
from pipeline.core.errors import MissingError
from pipeline.core.registry import Registry
from pipeline.export.export import EXPORT_FORMATS, ExportFormat, export, load_writer
from pipeline.store.refs import LAST
from pipeline.store.store import Store

DESCRIPTIONS = Registry(
    "description",
    ExportFormat("markdown", "pipeline.export.card:markdown_card", "a data card"),
    ExportFormat("croissant", "pipeline.export.croissant:croissant", "a Croissant description, as JSON-LD"),
    ExportFormat("spdx", "pipeline.export.spdx:bill_of_materials", "an SPDX bill of materials, as JSON"),
)
"""Descriptions of a snapshot: `writer` is a function of its facts."""


def _add_export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", choices=EXPORT_FORMATS.names, help=_list(EXPORT_FORMATS))
    add_snapshot(parser)
    parser.add_argument("--out", type=output_path, required=True, help="an empty or a new folder")


@command("export", "write a snapshot for other tools", _add_export_arguments)
def _export(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    from pipeline.store.snapshot import open_usable, resolve_snapshot

    snapshot = open_usable(store, resolve_snapshot(store, options.corpus, options.snapshot))
    _say_whether_blocked(options, store, person)
    answer = export(snapshot, options.format, options.out)
    written = json.dumps(answer["written"])
    person.answer(f"snapshot {snapshot.snapshot_id[:12]} as {options.format} in {options.out}: {written}")
    return 0, answer


def _add_card_arguments(parser: argparse.ArgumentParser) -> None:
    add_snapshot(parser)
    parser.add_argument("--as", dest="form", choices=DESCRIPTIONS.names, default="markdown", help=_list(DESCRIPTIONS))


@command("card", "describe a snapshot: data card, Croissant, SPDX bill of materials", _add_card_arguments)
def _card(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    from pipeline.export.card import facts_of
    from pipeline.lineage.stored_build import stored_build
    from pipeline.store.snapshot import open_snapshot, resolve_snapshot

    store.active_withdrawals()  # raises where the log of withdrawals does not tell what a card must leave out
    snapshot = open_snapshot(store, resolve_snapshot(store, options.corpus, options.snapshot))
    _say_whether_blocked(options, store, person)
    verify = stored_build(store, options.corpus, options.snapshot).reached
    facts = facts_of(snapshot, verify.object_id if verify else None)
    described = load_writer(DESCRIPTIONS, options.form)(facts)
    is_text = isinstance(described, str)
    if not options.json:
        print(described if is_text else json.dumps(described, indent=1))
    return 0, {"snapshot_id": facts.snapshot.snapshot_id, options.form: described} if is_text else described


def _say_whether_blocked(options: argparse.Namespace, store: Store, person: PersonConsole) -> None:
    if options.snapshot == LAST:
        say_what_blocks(person, store, argparse.Namespace(corpus=options.corpus, of=LAST))


def _add_vocabulary_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", default="cpp-32768", help="name of the vocabulary; cpp-32768 unless given")
    parser.add_argument("--train", action="store_true", help="train it from the kept training documents of --corpus")
    extends = "with --train: begin with all ids and merges of this vocabulary, so that weights of it can be trained on"
    parser.add_argument("--extends", default="", metavar="NAME", help=extends)
    parser.add_argument("--size", type=int, help="number of entries, with --train")
    add_build(parser, "full")
    parser.add_argument(
        "--out", type=output_path, help="folder to write it into, with --train; one of that name is replaced"
    )
    parser.add_argument("--report", action="store_true", help="report how it encodes the documents of --corpus")


_HELP = "See `python -m pipeline vocabulary --help`."


@command("vocabulary", "describe a vocabulary, or train one from a corpus", _add_vocabulary_arguments)
def _vocabulary(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    from pipeline.lineage.vocabulary_report import corpus_texts, training_texts, vocabulary_report
    from pipeline.stages.tokenize.vocabulary import load_vocabulary, write_vocabulary

    if options.extends and not options.train:
        raise MissingError("vocabulary --extends", "--train is missing", "both", _HELP)
    if options.report:
        report = vocabulary_report(load_vocabulary(options.name), *corpus_texts(store, options.corpus, options.of))
        person.answer(FittedTable(f"Vocabulary {options.name} on corpus {options.corpus}", report["kinds"]))
        person.answer(
            json.dumps({name: value for name, value in report.items() if name != "kinds"}, indent=1), markup=False
        )
        return 0, report
    if options.train:
        if options.out is None or options.size is None:
            raise MissingError("vocabulary --train", "--out or --size is missing", "both", _HELP)
        texts, trained_on = training_texts(store, options.corpus, options.of)
        answer = write_vocabulary(
            options.out, options.name, texts, options.size, trained_on._replace(extends=options.extends)
        ).as_json()
    else:
        answer = load_vocabulary(options.name).as_json()
    person.answer(json.dumps(answer, indent=1), markup=False)
    return 0, answer


def _list(formats: Registry[ExportFormat]) -> str:
    return plain("; ".join(f"{form.name}: {form.description}" for form in formats))
