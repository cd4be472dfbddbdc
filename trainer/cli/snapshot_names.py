"""What a command line names to be read: one snapshot, several with weights, or one with a ref to follow."""

import math
import re
from typing import NamedTuple

from pipeline.core.errors import ParamsError
from pipeline.store.snapshot import resolve
from pipeline.store.store import Store
from trainer.checkpoint.checkpoint import open_stored, read_state

_ID = re.compile("[0-9a-f]{64}")
REFS = ("live", "candidate")


class Asked(NamedTuple):
    """The words: `mix` as NAME=WEIGHT, the others None where they were not given."""

    corpus: str
    snapshot: str | None = None
    follow: str | None = None
    mix: tuple[str, ...] = ()


class Named(NamedTuple):
    """What they stand for; of a mixture `snapshot_id` is the first in order. See `trainer.train.loop.Sitting`."""

    snapshot_id: str
    mixture: tuple[tuple[str, float], ...] = ()
    follow: str | None = None


def named(store: Store, asked: Asked) -> Named:
    """The ids. Raises ParamsError for words that cannot be meant, MissingError for what is not there."""
    if asked.mix:
        return _mixed(store, asked)
    if asked.follow is None:
        return Named(resolve(store, asked.corpus, asked.snapshot or "live"))
    if asked.follow in REFS:
        first = resolve(store, asked.corpus, asked.snapshot or asked.follow)
        return Named(first, follow=f"{asked.corpus}/{asked.follow}")
    if asked.snapshot is not None:
        raise ParamsError(
            "--snapshot", "the run of a checkpoint is repeated", "nothing beside it", "Leave --snapshot out."
        )
    begun = read_state(open_stored(store, asked.follow))["identity"]["snapshot_id"]
    return Named(begun, follow=asked.follow)


def _mixed(store: Store, asked: Asked) -> Named:
    if asked.follow is not None or asked.snapshot is not None:
        raise ParamsError(
            "--mix", "--snapshot or --follow stands beside it", "--mix alone", "Name every snapshot by --mix."
        )
    mixture: dict[str, float] = {}
    for word in asked.mix:
        name, _, text = word.rpartition("=")
        weight = _weight(word, text)
        found = _snapshot_named(store, name)
        if found in mixture:
            raise ParamsError(f"--mix {word}", f"snapshot {found[:12]} is named twice", "each once, with its weight")
        mixture[found] = weight
    ordered = tuple(sorted(mixture.items()))
    return Named(ordered[0][0], ordered)


def _snapshot_named(store: Store, name: str) -> str:
    corpus, _, ref = name.partition("/")
    if ref not in ("", *REFS):
        raise ParamsError(
            f"--mix {name}", f"no ref {ref} is promoted", "CORPUS, CORPUS/live, CORPUS/candidate or an id"
        )
    return resolve(store, "", name) if _ID.fullmatch(name) else resolve(store, corpus, ref or "live")


def _weight(word: str, text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not (weight > 0 and math.isfinite(weight)):
        raise ParamsError(f"--mix {word}", f"its weight is {text or 'missing'}", "NAME=WEIGHT, a number above zero")
    return weight
