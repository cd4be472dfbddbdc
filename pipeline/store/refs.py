"""Refs of a store: names of ids, moved by compare-and-swap, each move in the history."""

from collections.abc import Iterator
from typing import Any

from pipeline.core.errors import DamagedError, MissingError, ParamsError, RefMovedError
from pipeline.store.checked_text import read_value, text_of, write_value
from pipeline.store.locks import REFS_LOCK
from pipeline.store.log import PROMOTIONS
from pipeline.store.objects import Objects
from pipeline.store.store_layout import is_name, refuse_bad_corpus, visible

_UNSET = "-"
"""Value of a ref that is about to be made: a ref of which the history has a line, but no file, was deleted."""
_REMEDY = f"The last id is in {PROMOTIONS}; the next move of the ref repairs it."


class Refs(Objects):
    """Refs under `root`/refs/<corpus>, and under `root`/refs/runs/<run>."""

    def ref(self, corpus: str, name: str) -> str | None:
        """Return the id that a ref names, or None. Raises DamagedError for a ref that is not as written."""
        refuse_bad_corpus(corpus)
        if not is_name(name):
            return None
        found = read_value(self.root, f"refs/{corpus}/{name}", f"ref {corpus}/{name}", _REMEDY)
        return None if found == _UNSET else found

    def ref_text(self, corpus: str, name: str) -> str | None:
        """Return what a ref holds, an id or the text of a damaged one: the `old` of the next move. None if it is missing."""
        try:
            return self.ref(corpus, name)
        except DamagedError:
            return f"damaged: {text_of(self.root / 'refs' / corpus / name)!r:.200}"

    def refs(self, corpus: str) -> dict[str, str]:
        """Return all refs of a corpus, sorted by name."""
        refuse_bad_corpus(corpus)
        names = (path.name for path in visible((self.root / "refs" / corpus).glob("*")) if path.is_file())
        return {name: found for name in names if (found := self.ref_text(corpus, name)) is not None}

    def corpora(self) -> list[str]:
        """Return every corpus that has refs, sorted; training runs as `runs/NAME`."""
        return sorted({place.rpartition("/")[0] for places in self.named_by().values() for place in places})

    def named_by(self) -> dict[str, list[str]]:
        """Return the refs of the whole store by what they hold: id -> `corpus/name`, sorted."""
        found: dict[str, list[str]] = {}
        for corpus, name in self._places():
            text = self.ref_text(corpus, name)
            if text is not None:
                found.setdefault(text, []).append(f"{corpus}/{name}")
        return found

    def bad_refs(self) -> Iterator[DamagedError]:
        """Iterate over the refs that are not as written, are missing, or are not where the history says.

        A kill leaves a ref where it was before the last line, or without a value before its first line.
        """
        last: dict[tuple[str, str], dict[str, Any]] = {}
        for entry in self.entries(PROMOTIONS):
            last[entry["corpus"], entry["ref"]] = entry
        for corpus, name in sorted(last.keys() | set(self._places())):
            try:
                found, entry = self.ref(corpus, name), last.get((corpus, name), {"old": None, "new": None})
            except DamagedError as error:
                yield error
                continue
            if found is None and entry["new"] and not (self.root / "refs" / corpus / name).exists():
                yield DamagedError(f"ref {corpus}/{name}", "it is missing", _short(entry["new"]), _REMEDY)
            elif found not in (entry["old"], entry["new"]):
                expected = f"{_short(entry['new'])}, as {PROMOTIONS} says"
                yield DamagedError(f"ref {corpus}/{name}", f"it is at {_short(found)}", expected, _REMEDY)

    def move_ref(
        self, corpus: str, name: str, old: str | None, new: str, reason: str, proof: str | None = None
    ) -> None:
        """Compare-and-swap a ref. Raises RefMovedError if it no longer holds `old`.

        `proof`, the id of what proved `new`, enters the history, also if only the proof is another than that of the last move.

        The line of the history is written first: a kill in between leaves a line without its move, never a move without its line.
        """
        if not is_name(name):
            raise ParamsError(
                f"ref {name[:80]!r}", "it is not a valid name", "letters, digits, dots, underscores and hyphens"
            )
        if self.locate(new) is None:
            raise MissingError(
                f"ref {corpus}/{name}", f"object {new[:12]} is not in the store", "", "Build again to make it."
            )
        with self.lock(REFS_LOCK):
            found = self.ref_text(corpus, name)
            if found != old:
                raise RefMovedError(
                    f"ref {corpus}/{name}",
                    f"it is at {_short(found)}",
                    f"{_short(old)}, where this writer last saw it",
                    "Another writer moved it. Look at what it names now, then run again.",
                )
            proved = {} if proof is None else {"proof": proof}
            entry = {"corpus": corpus, "ref": name, "old": old, "new": new, "reason": reason} | proved
            if found != new or not self._has_line(entry, proof):
                if not (self.root / "refs" / corpus / name).exists():
                    write_value(self.root, f"refs/{corpus}/{name}", _UNSET)
                self.append(PROMOTIONS, entry)
                write_value(self.root, f"refs/{corpus}/{name}", new)

    def remove_ref(self, corpus: str, name: str, reason: str) -> None:
        """Remove a ref. The line of the history is written first, as in `move_ref`."""
        with self.lock(REFS_LOCK):
            old = self.ref_text(corpus, name)
            if old is not None:
                self.append(PROMOTIONS, {"corpus": corpus, "ref": name, "old": old, "new": None, "reason": reason})
                (self.root / "refs" / corpus / name).unlink()

    def _has_line(self, entry: dict[str, Any], proof: str | None) -> bool:
        """Return whether the history has a move of the same ref to the same id by the same proof."""
        if proof is None:
            return True
        names = ("ref", "new", "proof")
        return any(all(each.get(name) == entry[name] for name in names) for each in self.history(entry["corpus"]))

    def _places(self) -> Iterator[tuple[str, str]]:
        """Iterate over the corpus and the name of every file of a ref, sorted."""
        root = self.root / "refs"
        for path in (path for path in visible(root.glob("**/*")) if not path.is_dir() or path.is_symlink()):
            place = path.relative_to(root)
            if is_name(path.name) and place.parent.as_posix() != ".":
                yield place.parent.as_posix(), path.name


def _short(object_id: str | None) -> str:
    return object_id[:12] if object_id else "nothing"
