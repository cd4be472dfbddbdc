"""Names of snapshots on a command line: one snapshot, several with weights, or one with a ref to follow."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pipeline.core.child_process import run_child
from pipeline.core.errors import MissingError, ParamsError, TrainingError
from pipeline.store.bundles.import_bundle import import_bundle
from pipeline.store.named_objects import MIN_DIGITS
from pipeline.store.snapshot import REFS, resolve_snapshot
from pipeline.store.store import Store
from trainer.checkpoint.stored_state import checkpoint_id, open_stored, read_state
from trainer.config.mix import LANES

DEFAULT_CORPUS = "quick"
_ROOT = Path(__file__).parents[2]
_IMPORT_SECONDS = 3600.0
_IS_DIGITS = re.compile(rf"[0-9a-f]{{{MIN_DIGITS},64}}")


class ResolvedSnapshots(NamedTuple):
    """Ids of the snapshots, as fields of `trainer.train.session.TrainSession`; of a mixture `snapshot_id` is the first in order."""

    snapshot_id: str
    mixture: tuple[tuple[str, float], ...] = ()
    follow: str | None = None


def resolve_snapshots(
    store: Store, corpus: str | None, snapshot: str | None, follow: str | None, mix: Sequence[str]
) -> ResolvedSnapshots:
    """Resolve the arguments of these names; `mix` holds NAME=WEIGHT, and each names its corpus.

    Raises ParamsError for arguments that contradict each other, MissingError for an unknown name.
    """
    others = {"--corpus": corpus, "--snapshot": snapshot, "--follow": follow}
    if mix and (given := [name for name, value in others.items() if value is not None]):
        raise _beside_others(store, mix[0], given)
    if mix:
        return _resolve_mixture(store, mix)
    corpus = DEFAULT_CORPUS if corpus is None else corpus
    if follow is None:
        return ResolvedSnapshots(resolve_snapshot(store, corpus, snapshot or "live"))
    if follow in REFS:
        return ResolvedSnapshots(resolve_snapshot(store, corpus, snapshot or follow), follow=f"{corpus}/{follow}")
    if snapshot is not None:
        found = "--follow names a checkpoint, whose snapshots are repeated"
        raise ParamsError("--snapshot", found, "no --snapshot", "Leave --snapshot out.")
    followed = checkpoint_id(store, follow)
    first = read_state(open_stored(store, followed))["identity"]["snapshot_id"]
    return ResolvedSnapshots(first, follow=followed)


def _beside_others(store: Store, argument: str, given: Sequence[str]) -> ParamsError:
    """Return the error for a mixture beside what names a snapshot too, or for a name alone that is meant as a share."""
    name, subject = argument.rpartition("=")[0], f"--mix {argument}"
    shares = "A share of a source, a license or a lane begins with `source:`, `license:` or `lane:`"
    try:
        _resolve_member(store, name)
    except (MissingError, ParamsError):
        near = f", such as `--mix lane:{argument}`" if name in LANES else ""
        return ParamsError(subject, f"there is no snapshot {name}", "a snapshot, or shares", f"{shares}{near}.")
    found = f"{name} names a snapshot, and {' and '.join(given)} {'is' if len(given) == 1 else 'are'} given too"
    remedy = f"Name every snapshot by --mix, such as `--mix CORPUS/candidate=1`. {shares}."
    return ParamsError(subject, found, "--mix alone", remedy)


def import_data(store: Store, bundle: Path, others: Sequence[str | None]) -> str:
    """Import the rows of a bundle, and return the id of its snapshot. Raises ParamsError where `others` name snapshots too.

    In a store with withdrawals it is judged by them first, which takes the pipeline and its libraries.
    """
    if any(other is not None for other in others):
        found = "--snapshot, --follow or --mix names snapshots too"
        raise ParamsError(f"--data {bundle}", found, "--data alone", "Leave the others out, or import it first.")
    if store.active_withdrawals():
        return _imported_by_pipeline(store, bundle)
    return import_bundle(store, bundle, with_proof=False).snapshot_id


def _imported_by_pipeline(store: Store, bundle: Path) -> str:
    line = [sys.executable, "-m", "pipeline", "snapshot", "import", str(bundle.absolute()), "--rows-only", "--json"]
    line += ["--quiet", "--store", str(store.root.absolute())]
    done = run_child(line, _IMPORT_SECONDS, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        found = f"the pipeline, which judges it by what is withdrawn here, does not answer: {done.last_line}"
        remedy = "Import it with `python -m pipeline snapshot import FILE`, where the pipeline's libraries are."
        raise TrainingError(f"--data {bundle.name}", found, "one JSON value", remedy) from None
    if done.exit_code != 0:
        raise TrainingError(f"--data {bundle.name}", str(answer["message"]))
    return str(answer["snapshot_id"])


def _resolve_mixture(store: Store, mix: Sequence[str]) -> ResolvedSnapshots:
    mixture: dict[str, float] = {}
    for argument in mix:
        name, _, text = argument.rpartition("=")
        weight = _weight(argument, text)
        found = _resolve_member(store, name)
        if found in mixture:
            named = f"snapshot {found[:12]} is named twice"
            raise ParamsError(f"--mix {argument}", named, "each once, with its weight", "Leave one of the two out.")
        mixture[found] = weight
    ordered = tuple(sorted(mixture.items()))
    return ResolvedSnapshots(ordered[0][0], ordered)


def _resolve_member(store: Store, name: str) -> str:
    corpus, _, ref = name.partition("/")
    if ref not in ("", *REFS):
        expected = "CORPUS, CORPUS/live, CORPUS/candidate or an id"
        raise ParamsError(f"--mix {name}", f"there is no ref {ref}", expected, "Correct what follows the slash.")
    if not ref and _IS_DIGITS.fullmatch(name) and not store.refs(name):
        return resolve_snapshot(store, "", name)
    return resolve_snapshot(store, corpus, ref or "live")


def _weight(argument: str, text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not (weight > 0 and math.isfinite(weight)):
        found = f"its weight is {text or 'missing'}"
        remedy = "Write as `--mix tiny=1 --mix quick=0.5`."
        raise ParamsError(f"--mix {argument}", found, "NAME=WEIGHT, the weight a number above zero", remedy)
    return weight
