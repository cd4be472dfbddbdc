"""Refs of a store: names of ids, moved by compare-and-swap, each move in the history."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pipeline.core.errors import DamagedError, MissingError, ParamsError, RefMovedError
from pipeline.storage.checked_text import read_value, text_of, write_value
from pipeline.store.log import PROMOTIONS
from pipeline.store.objects import Objects
from pipeline.store.store_layout import is_name, refuse_bad_corpus, visible

LIVE = "live"
"""The name of the ref to what is promoted."""
LAST = "last"
"""Ref of a corpus that names the output of the stage that its last build reached, also where a gate blocked it."""
AFTER_BUILD = "promoted after its build"
"""The reason of a promotion that nobody asked for: a run that builds a corpus, such as the nightly one, ends with it."""
WITH_BUILD = "build --promote"
"""The reason of a promotion that a command made of what it had built."""
ASKED = "asked"
"""Field of a move of `live`: `BY_ID`, or of a candidate, which no rollback is of, `BY_BUILD`."""
BY_ID, BY_BUILD = "by id", "by build"
IMPORTED = "imported"
"""The corpus, or the run, whose refs keep what was imported, unless another is given."""
ROWS_ALONE = "rows"
"""The field `holds` in the history of a snapshot that was imported without what it was made from."""
Moves = dict[tuple[str, str], tuple[str | None, ...]]
"""(corpus, name) -> what the ref may hold: the id of its last move, and the one before if a killed writer left it half made."""
_REMEDY = f"The last id is in {PROMOTIONS}; the next move of the ref repairs it."


class Refs(Objects):
    """Refs under `root`/refs/<corpus>, and under `root`/refs/runs/<run>."""

    def ref(self, corpus: str, name: str) -> str | None:
        """Return the id that a ref names, or None. Raises DamagedError for one that is not as written, or not at its last move."""
        refuse_bad_corpus(corpus)
        if not is_name(name):
            return None
        return self.read_consistently(lambda: self._judged(corpus, name, self._moves()))

    def ref_text(self, corpus: str, name: str) -> str | None:
        """Return what a ref holds, an id or the text of a damaged one: the `old` of the next move. None if it is missing."""
        try:
            return self.ref(corpus, name)
        except DamagedError:
            return self._damaged_text(corpus, name)

    def refs(self, corpus: str) -> dict[str, str]:
        """Return all refs of a corpus, sorted by name. Raises DamagedError for a history that is not as written."""
        refuse_bad_corpus(corpus)
        moves = self.read_consistently(self._moves)
        names = [path.name for path in visible((self.root / "refs" / corpus).glob("*")) if path.is_file()]
        return {name: found for name in names if (found := self._listed(corpus, name, moves)) is not None}

    def corpora(self) -> list[str]:
        """Return every corpus that has refs, sorted; training runs as `runs/NAME`."""
        return sorted({place.rpartition("/")[0] for places in self.named_by().values() for place in places})

    def named_by(self) -> dict[str, list[str]]:
        """Return the refs of the whole store by what they hold: id -> `corpus/name`, sorted. Also those not at their last move."""
        found: dict[str, list[str]] = {}
        self.pull()
        for corpus, name in self._places():
            text = self._text(corpus, name)
            if text is not None:
                found.setdefault(text, []).append(f"{corpus}/{name}")
        return found

    def lives(self, corpus: str) -> list[dict[str, Any]]:
        """Return the moves that made another snapshot live in a corpus, oldest first. Raises DamagedError."""
        moves = self.moves(corpus, LIVE)
        before = [None, *(entry["new"] for entry in moves)]
        return [entry for old, entry in zip(before, moves, strict=False) if entry["new"] not in (None, old)]

    def rolled_back(self, corpus: str) -> dict[str, dict[str, Any]]:
        """Return the snapshots that people rolled back from, each with the move that did so, the last one last.

        A person has moved `live` from it to one that was live earlier, by its id; it was not made live again since. A build that
        makes again what was live earlier, as where a change is taken back, is no rollback. Raises DamagedError.
        """
        found: dict[str, dict[str, Any]] = {}
        order: list[str] = []
        live = None
        for entry in self.lives(corpus):
            new = str(entry["new"])
            found.pop(new, None)
            is_back = live is not None and new in order[: order.index(live)]
            if live is not None and is_back and _is_by_id(entry):
                found.pop(live, None)
                found[live] = entry
            if new not in order or not _is_by_id(entry):  # what a build made live again comes after all before it
                order = [*(each for each in order if each != new), new]
            live = new
        return found

    def live_proofs(self) -> dict[str, list[str]]:
        """Return the proofs by which each snapshot was made live, oldest first. Raises DamagedError."""
        found: dict[str, list[str]] = {}
        for entry in self.entries(PROMOTIONS):
            if entry["ref"] == LIVE and "proof" in entry:
                found.setdefault(entry["new"], []).append(entry["proof"])
        return found

    def live_limits(self, object_id: str) -> dict[str, str]:
        """Return the corpora in which a snapshot is live by other limits than the recipe's, each with these limits, sorted."""
        lives: dict[str, dict[str, Any]] = {}
        for entry in self.entries(PROMOTIONS):
            lives |= {entry["corpus"]: entry} if entry["ref"] == LIVE else {}
        named = {
            corpus: str(entry.get("other_limits", "")) for corpus, entry in lives.items() if entry["new"] == object_id
        }
        return {corpus: limits for corpus, limits in sorted(named.items()) if limits}

    def rows_alone(self) -> set[str]:
        """Return the snapshots that were imported with their rows alone and have no proof here. Raises DamagedError."""
        found = {entry["new"] for entry in self.entries(PROMOTIONS) if entry.get("holds") == ROWS_ALONE}
        return {name for name in found if not self.storage.has(f"verified/{name}")}

    def bad_refs(self) -> Iterator[DamagedError]:
        """Iterate over the refs that are not as written, are missing, or are not where the history says.

        A kill leaves a ref where it was before the last line of the history, while no head names that line.
        """
        moves = self.read_consistently(self._moves)
        for corpus, name in sorted(moves.keys() | set(self._places())):
            try:
                self._judged(corpus, name, moves)
            except DamagedError:  # or moved meanwhile
                try:
                    self.ref(corpus, name)
                except DamagedError as error:
                    yield error

    def refuse_bad_refs(self, corpus: str, object_ids: Collection[str], but: str) -> None:
        """Raise DamagedError for the first ref of a corpus, other than `but`, that should be at one of these objects and is not."""

        def judge() -> None:
            moves = self._moves()
            for place in sorted(place for place, ids in moves.items() if not set(object_ids).isdisjoint(ids)):
                if place[0] == corpus and place[1] != but:
                    self._judged(*place, moves)

        self.read_consistently(judge)

    def move_ref(
        self, corpus: str, name: str, old: str | None, new: str, reason: str, proof: Mapping[str, str] | None = None
    ) -> bool:
        """Compare-and-swap a ref; return whether the history has a line of it. Raises RefMovedError if it no longer holds `old`.

        `proof`, what is known of the proof of `new`, enters the history, also if only that is not there yet.

        The line of the history is written first, then the ref, then the heads of the logs: what a kill leaves half made is finished
        or undone by the next move, and a ref that is older than a line that a head names was put back by somebody.
        """
        if not is_name(name):
            raise ParamsError(
                f"ref {name[:80]!r}", "it is not a valid name", "letters, digits, dots, underscores and hyphens"
            )
        if self.locate(new) is None:
            raise MissingError(
                f"ref {corpus}/{name}", f"object {new[:12]} is not in the store", "", "Build again to make it."
            )

        is_logged = False

        def move() -> None:
            nonlocal is_logged
            self._settle()
            found = self.ref_text(corpus, name)
            if found != old:
                raise RefMovedError(
                    f"ref {corpus}/{name}",
                    f"it is at {_short(found)}",
                    f"{_short(old)}, where this writer last saw it",
                    "Another writer moved it. Look at what it names now, then run again.",
                )
            entry = {"corpus": corpus, "ref": name, "old": old, "new": new, "reason": reason} | dict(proof or {})
            is_logged = found != new or bool(proof and not self._is_last_line(entry, ("new", *proof)))
            if is_logged:
                self.append(PROMOTIONS, entry, lambda: write_value(self.root, _place(corpus, name), new))

        self.change(move)
        return is_logged

    def remove_ref(self, corpus: str, name: str, reason: str) -> None:
        """Remove a ref. The line of the history is written first, as in `move_ref`."""

        def move() -> None:
            self._settle()
            old = self.ref_text(corpus, name)
            if old is not None:
                entry = {"corpus": corpus, "ref": name, "old": old, "new": None, "reason": reason}
                self.append(PROMOTIONS, entry, (self.root / _place(corpus, name)).unlink)

        self.change(move)

    def take_moves(self, entries: Sequence[Mapping[str, Any]]) -> None:
        last = {(entry["corpus"], entry["ref"]): entry["new"] for entry in entries}
        for corpus, name in sorted(last.keys() | set(self._places())):
            new = last.get((corpus, name))
            if new is None:
                (self.root / _place(corpus, name)).unlink(missing_ok=True)
            elif self._text(corpus, name) != new:
                write_value(self.root, _place(corpus, name), new)

    def _moves(self) -> Moves:
        """Read where the history says that each ref is. Raises DamagedError for a history that is not as written."""
        entries, num_named = self.lines(PROMOTIONS)
        moves: Moves = {(entry["corpus"], entry["ref"]): (entry["new"],) for entry in entries}
        for entry in entries[num_named:]:
            moves[entry["corpus"], entry["ref"]] = (entry["new"], entry["old"])
        return moves

    def _judged(self, corpus: str, name: str, moves: Moves) -> str | None:
        found, allowed = self._value(corpus, name), moves.get((corpus, name), (None,))
        if found not in allowed:
            was, expected = "missing" if found is None else f"at {_short(found)}", _short(allowed[0])
            raise DamagedError(f"ref {corpus}/{name}", f"it is {was}", f"{expected}, as {PROMOTIONS} says", _REMEDY)
        return found

    def _listed(self, corpus: str, name: str, moves: Moves) -> str | None:
        try:
            return self._judged(corpus, name, moves)
        except DamagedError:  # or moved meanwhile
            return self.ref_text(corpus, name)

    def _settle(self) -> None:
        """Finish the move that a killed writer left half made if its ref was written, otherwise take its line off the history."""
        entries, num_named = self.lines(PROMOTIONS)
        for entry in entries[num_named:]:
            found = self._text(entry["corpus"], entry["ref"])
            self.settle(PROMOTIONS, is_applied=found == entry["new"] or found != entry["old"])

    def _value(self, corpus: str, name: str) -> str | None:
        return read_value(self.root, _place(corpus, name), f"ref {corpus}/{name}", _REMEDY)

    def _text(self, corpus: str, name: str) -> str | None:
        try:
            return self._value(corpus, name)
        except DamagedError:
            return self._damaged_text(corpus, name)

    def _damaged_text(self, corpus: str, name: str) -> str | None:
        """Return what is in the file of a ref that is not as written; None for one that is missing."""
        text = text_of(self.root / _place(corpus, name))
        return None if text is None else f"damaged: {text!r:.200}"

    def _is_last_line(self, entry: dict[str, Any], names: Collection[str]) -> bool:
        """Return whether the last line about a ref has the same fields of these names."""
        last = self.moves(entry["corpus"], entry["ref"])[-1:]
        return all(each.get(name) == entry[name] for each in last for name in names) and bool(last)

    def _places(self) -> Iterator[tuple[str, str]]:
        """Iterate over the corpus and the name of every file of a ref, sorted."""
        root = self.root / "refs"
        for path in (path for path in visible(root.glob("**/*")) if not path.is_dir() or path.is_symlink()):
            place = path.relative_to(root)
            if is_name(path.name) and place.parent.as_posix() != ".":
                yield place.parent.as_posix(), path.name


def _is_by_id(move: Mapping[str, Any]) -> bool:
    """Return whether a person named what became live; of a line by an earlier version its reason says so."""
    return move[ASKED] == BY_ID if ASKED in move else move["reason"] not in (AFTER_BUILD, WITH_BUILD)


def _place(corpus: str, name: str) -> str:
    return f"refs/{corpus}/{name}"


def _short(object_id: str | None) -> str:
    return object_id[:12] if object_id else "nothing"
