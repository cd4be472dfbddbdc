"""The commands about what a store holds as a whole: `diff`, `card`, `withdraw`, `gc`."""

import argparse
import json
from dataclasses import asdict
from typing import Any

from rich.console import Console

from pipeline.cli import console
from pipeline.core.command_line import whole_number
from pipeline.store.store import Store

Answer = tuple[int, dict[str, Any] | list[Any]]
_SHOWN = ("kind", "object_id", "num_documents", "refs")
DESCRIPTIONS = ("markdown", "croissant", "spdx")


def add_diff(parser: argparse.ArgumentParser) -> None:
    """Arguments of `diff A B`."""
    parser.add_argument("a", help="live, candidate or a snapshot id")
    parser.add_argument("b", help="the other")
    parser.add_argument(
        "--corpus", "--recipe", default="quick", help="the corpus whose refs `live` and `candidate` are"
    )
    parser.add_argument("--documents", type=whole_number(0, 10**9), default=20, help="documents named, at most")


def run_diff(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    """What changed between two snapshots, by cause."""
    from pipeline.lineage.diff import difference
    from pipeline.store.snapshot import resolve

    a, b = (resolve(store, options.corpus, name) for name in (options.a, options.b))
    found = difference(store, a, b, options.documents)
    person.print(console.plain_table("Totals", [{"snapshot": name} | row for name, row in found.totals.items()]))
    for title, rows in (
        ("Made with", found.settings),
        ("Changes", found.causes),
        ("Documents", found.documents),
    ):
        if rows:
            person.print(console.plain_table(title, rows))
    if not found.causes:
        person.print("no document differs")
    return 0, found.as_json()


def add_card(parser: argparse.ArgumentParser) -> None:
    """Arguments of `card`."""
    parser.add_argument(
        "--corpus", "--recipe", default="quick", help="the corpus whose refs `live` and `candidate` are"
    )
    parser.add_argument("--snapshot", default="live", help="live, candidate or a snapshot id")
    parser.add_argument("--as", dest="form", choices=DESCRIPTIONS, default="markdown", help="which description")


def run_card(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    """A description of a snapshot on stdout: a data card, Croissant JSON-LD, or an SPDX bill of materials."""
    from pipeline.export.card import facts_of, markdown_card
    from pipeline.export.croissant import croissant
    from pipeline.export.spdx import bill_of_materials
    from pipeline.store.snapshot import open_snapshot, resolve

    facts = facts_of(open_snapshot(store, resolve(store, options.corpus, options.snapshot)))
    if options.form == "markdown":
        answer: dict[str, Any] = {"snapshot_id": facts.snapshot.snapshot_id, "markdown": markdown_card(facts)}
    else:
        answer = croissant(facts) if options.form == "croissant" else bill_of_materials(facts)
    if not options.json:
        print(answer["markdown"] if options.form == "markdown" else json.dumps(answer, indent=1))
    return 0, answer


def add_withdraw(parser: argparse.ArgumentParser) -> None:
    """Arguments of `withdraw [SELECTOR]`."""
    parser.add_argument(
        "selector", nargs="?", help="SOURCE, SOURCE/GLOB, or sha256: and a file's digest; without it, all are listed"
    )
    parser.add_argument("--reason", default="withdrawn by hand", help="why; kept in the store")
    parser.add_argument("--undo", action="store_true", help="take the withdrawal back")


def run_withdraw(options: argparse.Namespace, store: Store, person: Console) -> dict[str, Any]:
    """Withdraw something from every corpus of the store, and say which snapshots and checkpoints hold it."""
    from pipeline.build.withdrawal import restore, standing, withdraw

    if options.selector is None:
        stands = [selector.text for selector in standing(store)]
        person.print("\n".join(stands) or "nothing is withdrawn", markup=False)
        return {"standing": stands, "history": store.withdrawals()}
    if options.undo:
        restore(store, options.selector, options.reason)
        person.print(f"{options.selector} may be collected again", markup=False)
        return {"selector": options.selector, "is_undone": True, "holders": []}
    rows = [asdict(holder) for holder in withdraw(store, options.selector, options.reason)]
    person.print(f"{options.selector} is withdrawn: no build of this store collects it from now on", markup=False)
    if rows:
        person.print(console.plain_table("Holding it now", [{name: row[name] for name in _SHOWN} for row in rows]))
        person.print(
            "Build and promote each corpus anew, then `gc` removes the rest; a training's refs go with `gc --forget`."
        )
    return {"selector": options.selector, "is_undone": False, "holders": rows}


def add_gc(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gc`."""
    parser.add_argument("--blobs", action="store_true", help="also archives that no collected source was read from")
    parser.add_argument(
        "--forget", metavar="REF", help="first remove the refs of a corpus, or of a training as runs/NAME"
    )
    parser.add_argument("--reason", default="forgotten by hand", help="why; kept in the history, with --forget")
    parser.add_argument("--dry-run", action="store_true", help="say what would go; nothing is removed")


def run_gc(options: argparse.Namespace, store: Store, person: Console) -> Answer:
    """Remove every object that no ref leads to, and what killed processes left."""
    from pipeline.store.garbage import forget, reclaim

    if options.forget is not None and not options.dry_run:
        forget(store, options.forget, options.reason)
    done = reclaim(store, options.blobs, options.dry_run)
    verb = "would go" if options.dry_run else "went"
    person.print(
        f"{len(done.object_ids)} objects, {len(done.blobs)} archives and {done.num_leftovers} leftovers {verb}: "
        f"{done.num_bytes / 1e6:.1f} MB; {done.num_kept} objects stay"
    )
    return 0, asdict(done) | {"is_rehearsal": options.dry_run}
