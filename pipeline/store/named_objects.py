"""Names of objects on a command line: a ref of a corpus, an id, or the first digits of one, as git takes them."""

import difflib
import re
from collections.abc import Iterable

from pipeline.core.command_line import shell_command
from pipeline.core.errors import MissingError, did_you_mean
from pipeline.store.objects import read_manifest
from pipeline.store.refs import LAST, LIVE
from pipeline.store.store import Store
from pipeline.store.store_layout import INITIALIZED_FROM, MANIFEST, REPEATED, RUNS, is_id

MIN_DIGITS = 6
"""Digits of an id from which on it is looked for."""
_MAX_LISTED = 5
_DIGITS = re.compile(rf"[0-9a-f]{{{MIN_DIGITS},63}}")


def resolve(store: Store, corpus: str, name: str, kind: str = "") -> str:
    """Return the id of an object by a ref of a corpus, such as `live`, if one is given, by its id, or by the first digits of that.

    A ref of any corpus or run is named as it is listed too: `mine/live`, `runs/NAME/latest`.

    Of RUN@STEP it is what the run saved after that step, where its refs name one. With `kind`, short ids are those of objects whose
    kind begins so. Raises MissingError for a name of nothing, or of several objects, listing up to five.
    """
    place, ref = split_ref(store, corpus, name)
    if place and (found := store.ref(place, ref)) is not None:
        return found
    if is_id(name):
        return store.read(name).object_id
    run, at, step = name.rpartition("@")
    candidates = list(_saved(store, run, step)) if at else _beginning(store, name, kind)
    if len(candidates) == 1:
        return candidates[0]
    raise _ambiguous(store, name, candidates) if candidates else _unknown(store, corpus, name, kind)


def split_ref(store: Store, corpus: str, name: str) -> tuple[str, str]:
    """Return corpus and name of a ref that is named with its corpus, such as `mine/live`; other names are of `corpus`."""
    place, _, ref = name.rpartition("/")
    return (place, ref) if place and place in store.corpora() else (corpus, name)


def missing_corpus(store: Store, corpus: str, what: str = "", remedy: str = "") -> MissingError:
    """Return the error for a corpus, or a run `runs/NAME`, that a store has not, with those that it has.

    `what` is asked of it; without a name that is near, `remedy` says what to do.
    """
    is_run = corpus.startswith(f"{RUNS}/")
    names = [each.removeprefix(f"{RUNS}/") for each in store.corpora() if each.startswith(f"{RUNS}/") == is_run]
    name, kind = corpus.removeprefix(f"{RUNS}/"), "run" if is_run else "corpus"
    make = f"Name another, or make it by `{making(corpus)}`."
    shown = names[: 2 * _MAX_LISTED] + (["…"] if len(names) > 2 * _MAX_LISTED else [])
    expected = f"{kind} {' or '.join(shown)}" if names else f"a store with a {kind}"
    found = f"there is none in {store.storage.address}"
    return MissingError(what or f"{kind} {name}", found, expected, did_you_mean(name, names, remedy or make))


def making(corpus: str, ref: str = "candidate", has_candidate: bool = True) -> str:
    """Return the command that first moves a ref of a corpus, or makes a run `runs/NAME`; a build, where nothing can be promoted."""
    if corpus.startswith(f"{RUNS}/"):
        return shell_command("trainer train", "--run", corpus.removeprefix(f"{RUNS}/"), "--out", "FOLDER")
    if ref == LIVE and has_candidate:
        return shell_command("pipeline promote", corpus=corpus)
    return shell_command("pipeline build", "--recipe", "RECIPE", corpus=corpus)


def how_to_make(store: Store, corpus: str, ref: str) -> str:
    """Return the sentence about a ref that a corpus or a run has not: what makes it, or what has kept the last build from it."""
    refs = store.refs(corpus)
    has_candidate = "candidate" in refs
    if LAST in refs and not has_candidate:
        show = shell_command("pipeline show", corpus=corpus, of=LAST)
        return f"The last build has not come to a candidate: `{show}` says what blocked it, or how far it came."
    return f"Run `{making(corpus, ref, has_candidate)}` first."


def showing(store: Store, corpus: str = "") -> str:
    """Return the command that lists the refs of a corpus, or of the first one of the store where that has none."""
    corpora = [each for each in store.corpora() if not each.startswith(f"{RUNS}/")]
    return shell_command("pipeline show", corpus=corpus if corpus in corpora else next(iter(corpora), ""))


def _beginning(store: Store, digits: str, kind: str) -> list[str]:
    if _DIGITS.fullmatch(digits) is None:
        return []
    store.storage.fetch_all("objects")
    return sorted({path.parent.name for path in store.root.glob(f"objects/{kind or '*/*'}/{digits}*/{MANIFEST}")})


def _saved(store: Store, run: str, step: str) -> Iterable[str]:
    """Yield what a ref of a run names, such as `latest`, or the objects in its history whose identity holds that step."""
    if (latest := store.ref(f"{RUNS}/{run}", step)) is not None:
        yield latest
        return
    for object_id in dict.fromkeys(_named_by(store, run)):
        path = store.locate(object_id)
        if path is not None and str(read_manifest(path).identity.get("step")) == step:
            yield object_id


def _ambiguous(store: Store, name: str, candidates: list[str]) -> MissingError:
    found = f"{len(candidates)} objects are named so: {_listed(store, candidates, len(name) + 4)}"
    return MissingError(f"object {name}", found, "one object", "Give more digits of its id.")


_MADE = (LIVE, "candidate", LAST)
"""The refs that people use."""


def _unknown(store: Store, corpus: str, name: str, kind: str) -> MissingError:
    run, at, _ = name.rpartition("@")
    is_run = not at and f"{RUNS}/{name}" in store.corpora()
    if at or is_run:
        run = name if is_run else run
        saved = {str(step): None for step in _steps(store, run)}
        runs = [each.removeprefix(f"{RUNS}/") for each in store.corpora() if each.startswith(f"{RUNS}/")]
        known = [f"{run}@{step}" for step in list(saved)[-_MAX_LISTED:]] or [
            f"{each}@STEP" for each in runs[:_MAX_LISTED]
        ]
        remedy = "`python -m trainer checkpoints list` lists those of all runs."
        expected = f"one of {', '.join(known)}" if known else "a store with a run"
        found = "it is a run, and no checkpoint" if is_run else "there is none"
        return MissingError(f"checkpoint {name}", found, expected, remedy)
    if name in store.corpora():
        found, remedy = (
            "it is a corpus, and no object",
            f"`{shell_command('pipeline show', corpus=name)}` lists its refs.",
        )
        return MissingError(f"object {name!r}", found, "an id, or a ref", remedy)
    refs = list(store.refs(corpus)) if corpus else []
    if name in _MADE and refs:
        found, remedy = "there is none yet", how_to_make(store, corpus, name)
        return MissingError(f"ref {name} of corpus {corpus}", found, f"one of its refs {', '.join(refs)}", remedy)
    near = difflib.get_close_matches(name, refs, _MAX_LISTED, 0.5) or refs[: 2 * _MAX_LISTED]
    if _DIGITS.fullmatch(name):
        others = _beginning(store, name, "") if kind else []
        found = f"it is no {kind}: {_listed(store, others, len(name))}" if others else "no object's id begins so"
        of_kind = f"a {kind} or " if kind else ""
    else:
        no_ref = f"nor a ref of corpus {corpus}" if refs else f"and there is no corpus {corpus}"
        found, of_kind = "it is not an id" + (f", {no_ref}" if corpus else ""), ""
    expected = f"{of_kind}one of {', '.join(near)}" if near else "an id, or its first digits"
    show = f"`{showing(store, corpus)}` lists refs, `python -m trainer checkpoints list` those of runs."
    remedy = f"The first {MIN_DIGITS} digits of an id are enough; {show}"
    return MissingError(f"object {name[:80]!r}", found, expected, remedy)


def _named_by(store: Store, run: str) -> Iterable[str]:
    """Yield what the refs of a run have named, but for the weights that it begins with and what it repeats: of other runs."""
    moves = (entry for entry in store.history(f"{RUNS}/{run}") if entry["ref"] not in (INITIALIZED_FROM, REPEATED))
    yield from (entry["new"] for entry in moves if entry["new"])


def _steps(store: Store, run: str) -> Iterable[int]:
    for object_id in _named_by(store, run):
        path = store.locate(object_id)
        if path is not None:
            yield read_manifest(path).identity.get("step", 0)


def _listed(store: Store, candidates: list[str], num_digits: int) -> str:
    places = {name: store.locate(name) for name in candidates[:_MAX_LISTED]}
    kinds = {name: "/".join(path.parts[-3:-1]) for name, path in places.items() if path is not None}
    names = [f"{name[: max(12, num_digits)]} ({kind})" for name, kind in kinds.items()]
    return ", ".join([*names, "…"] if len(candidates) > _MAX_LISTED else names)
