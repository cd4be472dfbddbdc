"""Commands that maintain pins and the store: `pin`, `withdraw`, `gc` and `fsck`."""

import argparse
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pipeline.cli.building import add_build_arguments, given_build_options, run_build
from pipeline.cli.console import FittedTable, PersonConsole
from pipeline.cli.declaration import Answer, command
from pipeline.core.command_line import file_path, given_reason, shell_command, with_options
from pipeline.core.errors import SluiceError
from pipeline.store.store import Store
from pipeline.store.store_layout import has_format, refuse_no_store

if TYPE_CHECKING:
    from pipeline.stages.collect.kinds.source_kind import Fetcher
    from pipeline.store.garbage import Reclaimed


def _add_pin_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", help="a source of the catalog, whose release is downloaded; with PATH, any name"
    )
    parser.add_argument(
        "path", type=file_path, nargs="?", help="a folder or file of your own, which a kind of source recognizes"
    )
    parser.add_argument("--version", help="the release; the newest stable one unless given")
    parser.add_argument("--license", help="SPDX expression of the source as a whole")
    update = (
        "in place of NAME: look for newer releases and commits of all pins of a file, and show what each would change"
    )
    parser.add_argument("--update", type=file_path, metavar="PINS", help=update)


@command(
    "pin",
    "print a pins file entry, with its digest, of a release or of your own code",
    _add_pin_arguments,
    holds_store=False,
)
def _pin(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    from pipeline.build.recipes import refuse_reserved
    from pipeline.pins.pins import pin_toml
    from pipeline.stages.collect.propose_pin import NO_LICENSE, look_inside, propose_cataloged, propose_local

    given = (options.name, options.path, options.version, options.license)
    if options.update is not None and any(each is not None for each in given):
        options.refuse("found --update PINS with other arguments; expected it alone, for all pins of the file")
    if options.update is not None:
        return _update_pins(options, store, person)
    if options.name is None:
        options.refuse("found neither NAME nor --update PINS; expected one of the two")
    notes: tuple[str, ...] = ()
    if options.path is not None and options.version is not None:
        options.refuse("found PATH and --version; expected one of the two: a version is one of a cataloged release")
    refuse_reserved(options.name, f"pin {options.name}")
    ruling = None if options.license is None else _ruling(options.license, f"pin {options.name}")
    if options.path is not None:
        from pipeline.stages.normalize.params import ScrubParams
        from pipeline.stages.normalize.scrub.shown_text import ShownText, shown_error

        text = ShownText(ScrubParams())
        try:
            entry = propose_local(options.name, options.path.resolve(), options.license or NO_LICENSE)
            with TemporaryDirectory(prefix="pin-") as folder:  # what the store knows already says nothing of this file
                notes = look_inside(entry, _fetcher(Store(Path(folder))), text.shown)
        except SluiceError as error:
            raise shown_error(error, text) from None
    else:
        partial = store.partial_blob(f"pin-{options.name}")
        entry, notes = propose_cataloged(options.name, options.version, options.license, partial, store.put_blob)
    if not options.json:
        print(pin_toml(entry))
    for note in (*notes, *([ruling] if ruling else [])):
        person.print(note, markup=False)
    return 0, entry


def _ruling(license: str, subject: str) -> str:
    """Return what the license policy says against a license, empty where it allows it. Raises PinError for no expression."""
    from pipeline.stages.normalize.drop import Drop
    from pipeline.stages.normalize.license.policy import LicenseClass, refuse_no_expression

    found = refuse_no_expression(license, subject)
    if not isinstance(found, Drop) and found.license_class is not LicenseClass.REFUSED:
        return ""
    detail = found.detail if isinstance(found, Drop) else f"{found.expression} is refused"
    return f"By the license policy, {detail}: a file that states no other license is left out of every corpus."


def _update_pins(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    """Find newer releases and commits of the pins of a file. The exit code is 1 where one could not be asked."""
    from pipeline.build.recipes import pins_in
    from pipeline.build.withdrawal import collected_parts
    from pipeline.core.change_text import is_change_path
    from pipeline.core.table_names import FILES
    from pipeline.pins.pins import SourcePin
    from pipeline.stages.collect.update_pins import propose_updates
    from pipeline.stages.normalize.params import ScrubParams
    from pipeline.stages.normalize.scrub.shown_text import ShownText

    pins = pins_in(options.update)
    parts = {(part.identity["name"], part.identity["revision"]): part for part in collected_parts(store)}

    def known(pin: SourcePin) -> dict[str, str] | None:
        part = parts.get((pin.name, pin.revision))
        if part is None:
            return None
        rows = part.table(FILES, ["path", "blob_sha256"]).to_pylist()
        return {row["path"]: row["blob_sha256"] for row in rows if not is_change_path(row["path"])}

    updates, text = [], ShownText(ScrubParams())
    for found in propose_updates(pins, _fetcher(store), known):
        update = found.shown(text.message, text.name)
        updates.append(update)
        for line in update.lines:
            person.answer(line, markup=False)
    return int(any(update.failure for update in updates)), [asdict(update) for update in updates]


def _fetcher(store: Store) -> "Fetcher":
    """Return what fetches into the store, without a build."""
    from pipeline.stages.collect.kinds.source_kind import Fetcher
    from pipeline.stages.collect.params import CollectParams, RetryPolicy

    context: Any = SimpleNamespace(
        blob=store.blob,
        put_blob=store.put_blob,
        partial_blob=store.partial_blob,
        named_blob=store.named_blob,
        name_blob=store.name_blob,
        offline=False,
        params=CollectParams(),
    )
    return Fetcher(context, RetryPolicy())


def _add_withdraw_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "selector", nargs="?", help="SOURCE, SOURCE/GLOB, or sha256: and a file's digest; without it, all are listed"
    )
    author = (
        "withdraw the files that name a person, by an address or a name read from stdin; their digests alone are stored"
    )
    parser.add_argument("--author", action="store_true", help=author)
    parser.add_argument("--reason", type=given_reason, default="withdrawn by hand", help="kept in the store")
    parser.add_argument("--undo", action="store_true", help="take the withdrawal back")
    erasing = "remove the received bytes too, from archives and collected sources, with a receipt; alone, of all that is withdrawn"
    parser.add_argument("--erase", action="store_true", help=erasing)
    add_build_arguments(parser, recipe=None)


@command(
    "withdraw",
    "exclude something from every corpus, list what contains it, rebuild a corpus, and erase the received bytes",
    _add_withdraw_arguments,
    holds_store=False,
)
def _withdraw(options: argparse.Namespace, store: Store, person: PersonConsole) -> Answer:
    if options.author and options.selector is not None:
        options.refuse("found SELECTOR and --author; expected one of the two: the author is read from stdin")
    if options.undo and (options.author or options.erase):
        options.refuse(
            "found --undo with --author or --erase; expected the selector alone: what is erased stays erased"
        )
    if options.recipe is None and (given := given_build_options(options)):
        options.refuse(
            f"found {', '.join(given)} without --recipe; expected the recipe that is built after the withdrawal"
        )
    if options.recipe is not None and not options.author and options.selector is None:
        options.refuse("found --recipe without SELECTOR or --author; expected what is withdrawn before the build")
    if options.erase:
        store.storage.refuse("withdraw --erase")
    with store.in_use() if has_format(store.root) else nullcontext():
        answer, selectors = _change_withdrawals(options, store, person)
        code = 1 if answer.get("unread") else 0
        if options.recipe is not None:
            built_code, built = run_build(options, store, person)
            code, answer = built_code or code, answer | {"build": built}
    return code, answer | (
        _erase(options, store, person, selectors, answer.get("archives", {})) if options.erase else {}
    )


def _change_withdrawals(
    options: argparse.Namespace, store: Store, person: PersonConsole
) -> tuple[dict[str, Any], list[str]]:
    """List, take back or log withdrawals, and return the answer with the selectors that were asked for."""
    from pipeline.build.withdrawal import restore, withdraw_all
    from pipeline.removal.erased_archives import erased_for_persons

    if options.selector is None and options.undo:
        options.refuse("--undo names nothing; expected the withdrawal that is taken back")
    if options.undo:
        restore(store, options.selector, options.reason)
        person.answer(f"{options.selector} may be collected again", markup=False)
        return {"selector": options.selector, "is_undone": True, "holders": []}, []
    if options.selector is None and not options.author:
        active = store.active_withdrawals()
        person.answer("\n".join(active) or "nothing is withdrawn", markup=False)
        again = {"archives": erased_for_persons(store)} if options.erase else {}
        return {"active": active, "history": store.withdrawals(), **again}, active
    selectors, answer = _author_selectors(options, store, person) if options.author else ([options.selector], {})
    rows = [asdict(holder) for holder in withdraw_all(store, selectors, options.reason)]
    what = f"{len(selectors)} files are" if options.author else f"{options.selector} is"
    withdrawn = f"{what} withdrawn: no build of this store collects it from now on"
    person.answer(
        withdrawn if selectors else "nothing is withdrawn: no file of a corpus names the author", markup=False
    )
    _print_holders(rows, person, options.given_store)
    return {"selector": options.selector, "is_undone": False, **answer, "holders": rows}, selectors


def _author_selectors(
    options: argparse.Namespace, store: Store, person: PersonConsole
) -> tuple[list[str], dict[str, Any]]:
    """Find the files that name the author on stdin, and return their selectors with what is counted."""
    from pipeline.removal.author_files import author_files

    lines = [line.strip() for line in sys.stdin if line.strip()]
    if len(lines) > 1:
        options.refuse(f"found {len(lines)} lines on stdin; expected one, an address or a name: ask for each alone")
    author = "".join(lines)
    found = author_files(store, author)
    if author.casefold() in options.reason.casefold():
        options.refuse("--reason holds the author; expected words that may be stored")
    files = f"{found.num_files} files name the author in the bytes as collected"
    person.answer(": ".join([files, *_numbers(found.by_source)]), markup=False)
    remover = "this command" if options.erase else "only `withdraw --author --erase`, given the author again,"
    goes = f"is in no document, and {remover} removes the packs, archives and files that hold it"
    for numbers in _numbers(found.commits):
        person.answer(f"author or committer of commits: {numbers}. That {goes}.", markup=False)
    for numbers in _numbers(found.others):
        what = "messages of commits, and files with text that no build collects, name the author too"
        person.answer(f"{what}: {numbers}. That {goes}.", markup=False)
    if found.num_subjects:
        person.print(f"{found.num_subjects} subjects of commits do too, and are withdrawn with their changes.")
    if found.num_license_texts:
        person.print(f"{found.num_license_texts} license texts do too: they are evidence and stay.")
    for each in found.unread:
        person.print(f"not searched, so that this answer is incomplete: {each.error}", markup=False)
    counts = {name: value for name, value in asdict(found).items() if name != "digests"}
    return [f"sha256:{digest}" for digest in found.digests], {"num_files": found.num_files, **counts}


def _numbers(by_holder: Mapping[str, int]) -> list[str]:
    """Return how many there are in each source, in words; nothing where there are none."""
    return [", ".join(f"{holder} {number}" for holder, number in by_holder.items())] if by_holder else []


def _print_holders(rows: list[dict[str, Any]], person: PersonConsole, at: str | None) -> None:
    if not rows:
        return
    shown = ("kind", "object_id", "num_documents", "refs")
    table = [{name: row[name] for name in shown} for row in rows]
    unknown = {
        "num_documents": "not known: it is damaged, or the store has not the documents of all that it was made of"
    }
    table = [row if row["num_documents"] is not None else row | unknown for row in table]
    if all(row["num_documents"] is None for row in rows):
        person.answer(
            "nothing in this store is known to contain it: these may; `--undo` takes back what was misspelled",
            markup=False,
        )
    person.answer(FittedTable("Objects that contain it", table))
    kept = sorted({name for row in rows for name in row["kept_as"]})
    if kept:
        person.answer(
            f"copies of it stay under other names, withdraw these too if they must go: {', '.join(kept)}", markup=False
        )
    gc = shell_command("pipeline gc", store=at)
    person.print(
        f"Build and promote each corpus again, then `{gc}` removes the rest, with `--forget runs/NAME` a run's refs.",
        markup=False,
    )


def _erase(
    options: argparse.Namespace,
    store: Store,
    person: PersonConsole,
    selectors: list[str],
    naming: Mapping[str, int],
) -> dict[str, dict[str, Any]]:
    from pipeline.removal.erasure import erase

    if not (selectors or naming):
        options.refuse("--erase finds nothing that is withdrawn; expected SELECTOR, --author, or an earlier withdrawal")
    receipt_id, receipt = erase(store, selectors, options.reason, naming)
    files, num_rewritten = len(receipt.digests), len(receipt.rewritten)
    done = f"erased: the bytes of {files} files from {num_rewritten} files of collected sources, {len(receipt.blobs)} archives"
    gc = shell_command("pipeline gc", "--blobs", store=options.given_store)
    nothing = f"nothing is left of it in collected sources and their archives; `{gc}` finds archives of no source"
    person.answer(nothing if receipt_id is None else f"{done}; receipt {receipt_id}", markup=False)
    for each in receipt.held_by:
        refs = f" ({', '.join(each['refs'])})" if each.get("refs") else ""
        holds = "still holds" if each.get("is_known", True) else "may still hold"
        person.answer(
            f"{holds} a copy: {each['kind']} {each['object_id'][:12]}{refs}{_why_and_next(each, gc)}", markup=False
        )
    return {"receipt": {"id": receipt_id, **asdict(receipt)}}


def _why_and_next(holder: Mapping[str, Any], gc: str) -> str:
    """Return why a holder that is an archive may hold a copy, and what removes it."""
    from pipeline.removal.erasure import ARCHIVE

    if holder["kind"] != ARCHIVE:
        return ""
    unread = f", of which {number} pieces cannot be opened" if (number := holder.get("num_unread")) else ""
    if sources := holder.get("sources"):
        return f"{unread}, of source {', '.join(sources)}; to remove it, withdraw that as a whole and erase again"
    return f"{unread}; `{gc}` removes it, if it is of no source"


def _add_gc_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--blobs",
        action="store_true",
        help="also archives that no collected source was read from, and refused downloads",
    )
    parser.add_argument(
        "--forget", metavar="REF", help="first remove the refs of a corpus, or of a training run as runs/NAME"
    )
    forgotten = "forgotten by hand"
    parser.add_argument("--reason", type=given_reason, default=forgotten, help="kept in the history, with --forget")
    confirmed = parser.add_mutually_exclusive_group()
    confirmed.add_argument(
        "--yes", action="store_true", help="remove it; without this, a prompt at the terminal must confirm it"
    )
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
            from pipeline.stages.normalize.scrub.shown_text import shown_words  # others do not wait for its libraries

            forget(store, options.forget, shown_words(options.reason))
        done = reclaim(store, withdrawn, options.blobs)
        _print_reclaimed(done, "removed", person)
    elif not options.dry_run:
        forgotten = () if options.forget is None else ("--forget", options.forget)
        gc = ("pipeline gc", *(["--blobs"] if options.blobs else []), *forgotten, "--yes")
        person.answer(
            f"nothing was removed: `{shell_command(*gc, store=options.given_store)}` removes it", markup=False
        )
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
    from pipeline.removal.erased_archives import bytes_in_archives
    from pipeline.store.fsck import fsck

    if not (store.root / "objects").is_dir():  # objects without a format are damage, which is listed
        refuse_no_store(store.root)
    if options.accept_logs:
        store.accept_logs()
    problems = fsck(store, [bytes_in_archives])
    for problem in problems:
        person.answer(with_options(problem, store=options.given_store), markup=False, style="red")
    person.answer(f"{len(problems)} problems in {store.storage.address}")
    return int(bool(problems)), {"problems": problems}
