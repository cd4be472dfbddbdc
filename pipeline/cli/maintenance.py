"""Commands that maintain pins and the store: `pin`, `withdraw`, `gc` and `fsck`."""

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pipeline.cli.building import add_build_arguments, run_build
from pipeline.cli.console import FittedTable, PersonConsole
from pipeline.cli.declaration import Answer, command
from pipeline.core.command_line import file_path
from pipeline.store.store import Store
from pipeline.store.store_layout import refuse_no_store

if TYPE_CHECKING:
    from pipeline.store.garbage import Reclaimed


def _add_pin_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="a source of the catalog, whose release is downloaded; with PATH, any name")
    parser.add_argument(
        "path", type=file_path, nargs="?", help="a folder or file of your own, which a kind of source recognizes"
    )
    parser.add_argument("--version", help="the release; the newest stable one unless given")
    parser.add_argument("--license", help="SPDX expression of the source as a whole")


@command(
    "pin",
    "print a pins file entry, with its digest, of a release or of your own code",
    _add_pin_arguments,
    holds_store=False,
)
def _pin(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    from pipeline.build.recipes import refuse_reserved
    from pipeline.pins.pins import pin_toml
    from pipeline.stages.collect.propose_pin import propose_cataloged, propose_local

    notes: tuple[str, ...] = ()
    if options.path is not None and options.version is not None:
        options.refuse("found PATH and --version; expected one of the two: a version is one of a cataloged release")
    refuse_reserved(options.name, f"pin {options.name}")
    if options.license is not None:
        from pipeline.stages.normalize.license.policy import refuse_no_expression

        refuse_no_expression(options.license, f"pin {options.name}")
    if options.path is not None:
        entry = propose_local(options.name, options.path.resolve(), options.license or "NOASSERTION")
    else:
        partial = store.partial_blob(f"pin-{options.name}")
        entry, notes = propose_cataloged(options.name, options.version, options.license, partial, store.put_blob)
    if not options.json:
        print(pin_toml(entry))
    for note in notes:
        person.print(note, markup=False)
    return 0, entry


def _add_withdraw_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "selector", nargs="?", help="SOURCE, SOURCE/GLOB, or sha256: and a file's digest; without it, all are listed"
    )
    parser.add_argument("--reason", default="withdrawn by hand", help="kept in the store")
    parser.add_argument("--undo", action="store_true", help="take the withdrawal back")
    add_build_arguments(parser, recipe=None)


@command(
    "withdraw",
    "exclude something from every corpus, list what contains it, and rebuild a corpus",
    _add_withdraw_arguments,
)
def _withdraw(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    answer = _change_withdrawals(options, store, person)
    if options.recipe is None or options.selector is None:
        return 0, answer
    code, built = run_build(options, store, person)
    return code, answer | {"build": built}


def _change_withdrawals(options: argparse.Namespace, store: Store, person: PersonConsole) -> dict[str, Any]:
    from pipeline.build.withdrawal import active_withdrawals, restore, withdraw

    if options.selector is None and options.undo:
        options.refuse("--undo names nothing; expected the withdrawal that is taken back")
    if options.selector is None:
        active = [selector.text for selector in active_withdrawals(store)]
        person.answer("\n".join(active) or "nothing is withdrawn", markup=False)
        return {"active": active, "history": store.withdrawals()}
    if options.undo:
        restore(store, options.selector, options.reason)
        person.answer(f"{options.selector} may be collected again", markup=False)
        return {"selector": options.selector, "is_undone": True, "holders": []}
    rows = [asdict(holder) for holder in withdraw(store, options.selector, options.reason)]
    person.answer(f"{options.selector} is withdrawn: no build of this store collects it from now on", markup=False)
    if rows:
        shown = ("kind", "object_id", "num_documents", "refs")
        person.answer(FittedTable("Objects that contain it", [{name: row[name] for name in shown} for row in rows]))
        person.print(
            "Build and promote each corpus again, then `gc` removes the rest; `gc --forget` removes a run's refs."
        )
    return {"selector": options.selector, "is_undone": False, "holders": rows}


def _add_gc_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--blobs", action="store_true", help="also archives that no collected source was read from")
    parser.add_argument(
        "--forget", metavar="REF", help="first remove the refs of a corpus, or of a training run as runs/NAME"
    )
    parser.add_argument("--reason", default="forgotten by hand", help="kept in the history, with --forget")
    confirmed = parser.add_mutually_exclusive_group()
    confirmed.add_argument("--yes", action="store_true", help="remove it; without this, a terminal is asked")
    confirmed.add_argument("--dry-run", action="store_true", help="ask nothing and remove nothing")


@command("gc", "list what is kept and for what, and with --yes remove the rest", _add_gc_arguments, holds_store=False)
def _gc(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    from pipeline.build.withdrawal import holds_withdrawn
    from pipeline.store.garbage import forget, reclaim, refs_to_forget

    def withdrawn(snapshot_id: str) -> bool:
        return holds_withdrawn(store, snapshot_id)

    if options.forget is not None:
        refs_to_forget(store, options.forget)
    done = reclaim(store, withdrawn, options.blobs, is_rehearsal=True, forgotten=options.forget)
    for each in done.kept:
        inputs = f" and {each.num_objects - 1} inputs" if each.num_objects > 1 else ""
        person.answer(f"kept: {each.kind} {each.object_id[:12]}{inputs}: {'; '.join(each.kept_for)}", markup=False)
    _print_reclaimed(done, "would be removed", person)
    is_confirmed = options.yes or (not options.dry_run and _is_confirmed(options, person))
    if is_confirmed:
        if options.forget is not None:
            forget(store, options.forget, options.reason)
        done = reclaim(store, withdrawn, options.blobs)
        _print_reclaimed(done, "removed", person)
    elif not options.dry_run:
        person.answer("nothing was removed: `gc --yes` removes it")
    return 0, asdict(done) | {"is_rehearsal": not is_confirmed}


def _print_reclaimed(done: "Reclaimed", verb: str, person: PersonConsole) -> None:
    person.answer(
        f"{len(done.object_ids)} objects, {len(done.blobs)} archives and {done.num_leftovers} leftovers {verb}: "
        f"{done.num_bytes / 1e6:.1f} MB; {done.num_kept} objects kept"
    )


def _is_confirmed(options: argparse.Namespace, person: PersonConsole) -> bool:
    """Return whether a person at a terminal says so; nobody else is asked, and nobody else has confirmed."""
    is_asked = not options.json and sys.stdin.isatty() and person.is_terminal
    return is_asked and person.input("Remove them? [y/N] ").strip().lower() in ("y", "yes")


def _add_fsck_arguments(parser: argparse.ArgumentParser) -> None:
    help_text = "first take the lines of the logs as they are, after correcting a damaged one by hand"
    parser.add_argument("--accept-logs", action="store_true", help=help_text)


@command("fsck", "verify every byte in the store", _add_fsck_arguments, holds_store=False)
def _fsck(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    from pipeline.store.fsck import fsck

    if not (store.root / "objects").is_dir():  # objects without a format are damage, which is listed
        refuse_no_store(store.root)
    if options.accept_logs:
        store.accept_logs()
    problems = fsck(store)
    for problem in problems:
        person.answer(problem, markup=False, style="red")
    person.answer(f"{len(problems)} problems in {store.root}")
    return int(bool(problems)), {"problems": problems}
