"""Refs of a store: names of ids, moved by compare-and-swap, each move in the history."""

from pipeline.core.durable import replace
from pipeline.core.errors import DamagedError, MissingError, ParamsError, RefMovedError
from pipeline.store.locks import REFS_LOCK
from pipeline.store.log import PROMOTIONS, Log
from pipeline.store.objects import Objects
from pipeline.store.store_layout import is_id, is_name, refuse_bad_corpus, text_of, visible


class Refs(Objects, Log):
    """Refs under `root`/refs/<corpus>, and under `root`/refs/runs/<run>."""

    def ref(self, corpus: str, name: str) -> str | None:
        """Return the id that a ref names, or None. Raises DamagedError for a ref that does not hold an id."""
        found = self.ref_text(corpus, name)
        if found is not None and not is_id(found):
            raise DamagedError(
                f"ref {corpus}/{name}",
                f"it holds {found[:80]!r}",
                "an id",
                f"The last id is in {PROMOTIONS}; the next move of the ref repairs it.",
            )
        return found

    def ref_text(self, corpus: str, name: str) -> str | None:
        """Return what a ref holds, sound or not: the `old` of the next move. None if there is no such ref."""
        refuse_bad_corpus(corpus)
        return text_of(self.root / "refs" / corpus / name) if is_name(name) else None

    def refs(self, corpus: str) -> dict[str, str]:
        """Return all refs of a corpus, sorted by name."""
        refuse_bad_corpus(corpus)
        names = (path.name for path in visible((self.root / "refs" / corpus).glob("*")) if path.is_file())
        return {name: self.ref_text(corpus, name) or "" for name in names}

    def corpora(self) -> list[str]:
        """Return every corpus that has refs, sorted; training runs as `runs/NAME`."""
        return sorted({place.rpartition("/")[0] for places in self.named_by().values() for place in places})

    def named_by(self) -> dict[str, list[str]]:
        """Return the refs of the whole store by what they hold: id -> `corpus/name`, sorted."""
        root = self.root / "refs"
        found: dict[str, list[str]] = {}
        for path in (path for path in visible(root.glob("**/*")) if path.is_file()):
            found.setdefault(text_of(path) or "", []).append(path.relative_to(root).as_posix())
        return found

    def move_ref(self, corpus: str, name: str, old: str | None, new: str, reason: str) -> None:
        """Compare-and-swap a ref. Raises RefMovedError if it no longer holds `old`.

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
            if found != new:
                self.append(PROMOTIONS, {"corpus": corpus, "ref": name, "old": old, "new": new, "reason": reason})
                replace(self.root / "refs" / corpus / name, f"{new}\n".encode())

    def remove_ref(self, corpus: str, name: str, reason: str) -> None:
        """Remove a ref. The line of the history is written first, as in `move_ref`."""
        with self.lock(REFS_LOCK):
            old = self.ref_text(corpus, name)
            if old is not None:
                self.append(PROMOTIONS, {"corpus": corpus, "ref": name, "old": old, "new": None, "reason": reason})
                (self.root / "refs" / corpus / name).unlink()


def _short(object_id: str | None) -> str:
    return object_id[:12] if object_id else "nothing"
