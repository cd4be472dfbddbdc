"""The commands `snapshot export` and `snapshot import`: a snapshot as one file, from store to store."""

import argparse
from dataclasses import asdict, replace

from pipeline.cli.console import PersonConsole
from pipeline.cli.declaration import Answer, add_corpus, add_snapshot, command
from pipeline.core.command_line import file_path, output_path, shell_command
from pipeline.store.refs import IMPORTED
from pipeline.store.store import Store


def _add_export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=output_path, help="the bundle to write; one that is there is replaced whole")
    add_snapshot(parser)
    rows = "the snapshot and its rows alone, for a machine that trains on it"
    parser.add_argument("--rows-only", action="store_true", help=rows)


@command(
    "snapshot export",
    "write a snapshot, with all that it was made from and its evidence, as one file of equal bytes on any machine",
    _add_export_arguments,
)
def _export(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    from pipeline.export.card import facts_of, facts_of_rows, markdown_card
    from pipeline.store.bundles.export_bundle import export_bundle
    from pipeline.store.snapshot import open_usable, resolve_snapshot

    snapshot = open_usable(store, resolve_snapshot(store, options.corpus, options.snapshot))
    is_handed_on = options.rows_only and snapshot.snapshot_id in store.rows_alone()
    facts = facts_of_rows(snapshot) if is_handed_on else replace(facts_of(snapshot), when="", live_limits={})
    card = markdown_card(facts)
    done = export_bundle(snapshot, options.file, card, options.rows_only)
    size = f"{done.num_objects} objects, {done.num_bytes / 1e6:.1f} MB"
    person.answer(f"snapshot {done.snapshot_id} in {options.file}: {size}, digest {done.digest}", markup=False)
    return 0, asdict(done) | {"file": str(options.file)}


def _add_import_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=file_path, help="a bundle that `snapshot export` wrote")
    add_corpus(parser, IMPORTED, "the corpus whose refs name it then, as if it were built here")
    parser.add_argument(
        "--rows-only", action="store_true", help="the snapshot and its rows alone, also of a whole bundle"
    )


@command("snapshot import", "verify a bundle whole, then store what the store does not have", _add_import_arguments)
def _import(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    from pipeline.build.withdrawal import active_withdrawals, log_held
    from pipeline.removal.judged_import import refuse_withdrawn_import
    from pipeline.store.bundles.import_bundle import import_bundle

    judged = active_withdrawals(store)
    done = import_bundle(store, options.file, options.corpus, refuse_withdrawn_import, not options.rows_only)
    log_held(store, done.snapshot_id, judged)
    new = f"{done.num_new} of {done.num_objects} objects were new; digest {done.digest}"
    person.answer(f"snapshot {done.snapshot_id} is the candidate of corpus {done.corpus}: {new}", markup=False)
    at = options.given_store
    if done.proof is None:
        train = shell_command(
            "trainer train", "--snapshot", "candidate", "--out", "FOLDER", corpus=done.corpus, store=at
        )
        person.print(f"it has its rows alone: `{train}`", markup=False)
    else:
        promote = shell_command("pipeline promote", corpus=done.corpus, store=at)
        person.print(f"`{promote}` judges it again and makes it live", markup=False)
    return 0, asdict(done)
