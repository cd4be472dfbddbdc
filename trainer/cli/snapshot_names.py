"""Names of snapshots on a command line: one snapshot, several with weights, or one with a ref to follow."""

import math
import re
from typing import NamedTuple

from pipeline.core.errors import ParamsError
from pipeline.store.snapshot import resolve
from pipeline.store.store import Store
from trainer.checkpoint.checkpoint import open_stored, read_state
from trainer.train.follow_ref import REFS

_ID = re.compile("[0-9a-f]{64}")


class SnapshotArguments(NamedTuple):
    """The arguments as given: `mix` as NAME=WEIGHT, the others None where they are missing."""

    corpus: str
    snapshot: str | None = None
    follow: str | None = None
    mix: tuple[str, ...] = ()


class ResolvedSnapshots(NamedTuple):
    """Their ids, as fields of `trainer.train.session.TrainSession`; of a mixture `snapshot_id` is the first in order."""

    snapshot_id: str
    mixture: tuple[tuple[str, float], ...] = ()
    follow: str | None = None


def resolve_snapshots(store: Store, arguments: SnapshotArguments) -> ResolvedSnapshots:
    """Resolve the names. Raises ParamsError for arguments that contradict each other, MissingError for an unknown name."""
    corpus, snapshot, follow, mix = arguments
    if mix:
        return _resolve_mixture(store, arguments)
    if follow is None:
        return ResolvedSnapshots(resolve(store, corpus, snapshot or "live"))
    if follow in REFS:
        return ResolvedSnapshots(resolve(store, corpus, snapshot or follow), follow=f"{corpus}/{follow}")
    if snapshot is not None:
        raise ParamsError(
            "--snapshot",
            "--follow names a checkpoint, whose snapshots are repeated",
            "no --snapshot",
            "Leave --snapshot out.",
        )
    first = read_state(open_stored(store, follow))["identity"]["snapshot_id"]
    return ResolvedSnapshots(first, follow=follow)


def _resolve_mixture(store: Store, arguments: SnapshotArguments) -> ResolvedSnapshots:
    if arguments.follow is not None or arguments.snapshot is not None:
        raise ParamsError(
            "--mix", "--snapshot or --follow is given too", "--mix alone", "Name every snapshot by --mix."
        )
    mixture: dict[str, float] = {}
    for argument in arguments.mix:
        name, _, text = argument.rpartition("=")
        weight = _weight(argument, text)
        found = _resolve_member(store, name)
        if found in mixture:
            raise ParamsError(
                f"--mix {argument}", f"snapshot {found[:12]} is named twice", "each once, with its weight"
            )
        mixture[found] = weight
    ordered = tuple(sorted(mixture.items()))
    return ResolvedSnapshots(ordered[0][0], ordered)


def _resolve_member(store: Store, name: str) -> str:
    corpus, _, ref = name.partition("/")
    if ref not in ("", *REFS):
        raise ParamsError(
            f"--mix {name}", f"no ref {ref} is promoted", "CORPUS, CORPUS/live, CORPUS/candidate or an id"
        )
    return resolve(store, "", name) if _ID.fullmatch(name) else resolve(store, corpus, ref or "live")


def _weight(argument: str, text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not (weight > 0 and math.isfinite(weight)):
        raise ParamsError(f"--mix {argument}", f"its weight is {text or 'missing'}", "NAME=WEIGHT, a number above zero")
    return weight
