"""Objects that garbage collection keeps, and what each is kept for.

What a ref names; the last snapshots that were live in a corpus, to which one may roll back; what a blocked build reached, for a
week, so that it can be looked at; and the receipts of erasures. Nothing that holds withdrawn documents is kept but by a ref.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from pipeline.core.errors import StoreError
from pipeline.store.log import PROMOTIONS
from pipeline.store.refs import LIVE
from pipeline.store.store import Store
from pipeline.store.store_layout import visible

NUM_LIVE = 5
"""Snapshots of a corpus that stay when another becomes live: the last that were, with the one that is."""
BLOCKED_FOR = timedelta(days=7)
"""Time for which the output of a stage whose gate failed stays."""


def kept_for(
    store: Store, holds_withdrawn: Callable[[str], bool], forgotten: str | None = None
) -> dict[str, list[str]]:
    """Return the ids to keep, each with what it is kept for, as if a corpus or run were `forgotten`.

    Raises DamagedError for a damaged or missing ref.
    """
    for error in store.bad_refs():
        raise error
    found: dict[str, list[str]] = {}
    for name, places in sorted(store.named_by().items()):
        kept = [f"ref {place}" for place in places if place.rpartition("/")[0] != forgotten]
        if kept:
            found[name] = kept
    for name, reason in (*_lives(store, holds_withdrawn, forgotten), *_blocked(store)):
        found.setdefault(name, []).append(reason)
    for name, when in sorted(store.receipts().items()):
        found.setdefault(name, []).append(f"receipt of what was erased on {when[:10]}")
    return found


def _lives(store: Store, holds_withdrawn: Callable[[str], bool], forgotten: str | None) -> Iterator[tuple[str, str]]:
    """Iterate over the last live snapshots of each corpus, without the one that is; a corpus that was forgotten has none."""
    lives: dict[str, dict[str, str]] = {}
    for entry in store.entries(PROMOTIONS):
        if entry["ref"] == LIVE:
            untils = lives.setdefault(entry["corpus"], {})
            untils |= {name: entry["when"] for name, until in untils.items() if not until}
            untils.pop(entry["new"], None)  # the newest is the last
            untils |= {entry["new"]: ""}
            if entry["new"] is None:
                untils.clear()
    for corpus, untils in sorted(lives.items()):
        for name, until in [*untils.items()][-NUM_LIVE:]:
            if until and corpus != forgotten and store.locate(name) is not None and not holds_withdrawn(name):
                yield name, f"live in {corpus} until {until[:10]}: one of the last {NUM_LIVE}, to roll back to"


def _blocked(store: Store) -> Iterator[tuple[str, str]]:
    """Iterate over the outputs of stages that a gate stopped in the last days, after the last withdrawal."""
    now = store.clock()
    withdrawn = max((datetime.fromisoformat(entry["when"]) for entry in store.withdrawals()), default=None)
    store.storage.fetch_all("verdicts")
    for path in visible(store.root.glob("verdicts/*.json")):
        try:
            found = store.verdicts(path.stem)
            failed = sorted(str(each["gate"]) for each in found["verdicts"] if each["blocking"] and not each["passed"])
            when = datetime.fromisoformat(found["when"])
            why = f"blocked on {when.date()} by {', '.join(failed)}" if failed else ""
        except StoreError:
            when = datetime.fromtimestamp(path.lstat().st_mtime, UTC)
            why = "its verdicts are damaged, so that nobody knows whether it was blocked"
        if why and now - when < BLOCKED_FOR and (withdrawn is None or when > withdrawn):
            yield path.stem, f"{why}: kept for {BLOCKED_FOR.days} days"
