"""Commands that write files for others: `export`, `card` and `vocabulary`."""

import argparse
import json
from pathlib import Path

from rich.console import Console

from pipeline.cli.console import plain_table
from pipeline.cli.declaration import Answer, CliCommand, add_corpus, add_snapshot
from pipeline.core.errors import MissingError
from pipeline.export.export import EXPORT_FORMATS, export
from pipeline.store.store import Store

DESCRIPTIONS = ("markdown", "croissant", "spdx")


def _add_export_arguments(parser: argparse.ArgumentParser) -> None:
    formats = "; ".join(f"{form.name}: {form.description}" for form in EXPORT_FORMATS)
    parser.add_argument("format", choices=EXPORT_FORMATS.names, help=formats)
    add_snapshot(parser)
    parser.add_argument("--out", type=Path, required=True, help="an empty or a new folder")


def _export(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    from pipeline.store.snapshot import open_snapshot, resolve

    snapshot = open_snapshot(store, resolve(store, options.corpus, options.snapshot))
    answer = export(snapshot, options.format, options.out)
    person.print(f"snapshot {snapshot.snapshot_id[:12]} as {options.format} in {options.out}: {answer['written']}")
    return 0, answer


def _add_card_arguments(parser: argparse.ArgumentParser) -> None:
    add_snapshot(parser)
    parser.add_argument("--as", dest="form", choices=DESCRIPTIONS, default="markdown", help="form of the description")


def _card(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    from pipeline.export.card import facts_of, markdown_card
    from pipeline.export.croissant import croissant
    from pipeline.export.spdx import bill_of_materials
    from pipeline.store.snapshot import open_snapshot, resolve

    facts = facts_of(open_snapshot(store, resolve(store, options.corpus, options.snapshot)))
    if options.form == "markdown":
        answer = {"snapshot_id": facts.snapshot.snapshot_id, "markdown": markdown_card(facts)}
    else:
        answer = croissant(facts) if options.form == "croissant" else bill_of_materials(facts)
    if not options.json:
        print(answer["markdown"] if options.form == "markdown" else json.dumps(answer, indent=1))
    return 0, answer


def _add_vocabulary_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", default="cpp-32768", help="name of the vocabulary; cpp-32768 unless given")
    parser.add_argument("--train", action="store_true", help="train it from the kept training documents of --corpus")
    parser.add_argument("--size", type=int, help="number of entries, with --train")
    add_corpus(parser, "full")
    parser.add_argument("--out", type=Path, help="folder to write it into, with --train")
    parser.add_argument("--report", action="store_true", help="report its tokens of the documents of --corpus")


def _vocabulary(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    from pipeline.lineage.vocabulary_report import corpus_texts, training_texts, vocabulary_report
    from pipeline.tokenize.vocabulary import load_vocabulary, write_vocabulary

    if options.report:
        report = vocabulary_report(load_vocabulary(options.name), *corpus_texts(store, options.corpus))
        person.print(plain_table(f"Vocabulary {options.name} on corpus {options.corpus}", report["kinds"]))
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


COMMANDS = (
    CliCommand("export", "write a snapshot for other tools", _export, _add_export_arguments),
    CliCommand("card", "describe a snapshot: data card, Croissant, SPDX bill of materials", _card, _add_card_arguments),
    CliCommand(
        "vocabulary", "describe a vocabulary, or train one from a corpus", _vocabulary, _add_vocabulary_arguments
    ),
)
