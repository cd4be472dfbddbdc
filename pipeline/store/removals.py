"""Removals of objects from a store, with all that names them: marked before the first goes, so that a kill leaves no half of it."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from pipeline.core.durable import sync
from pipeline.core.errors import DamagedError
from pipeline.storage.checked_text import read_value, text_of, write_value
from pipeline.store.log import Log
from pipeline.store.store_layout import visible

ERASED = "erased"
"""Folder of the records of erasures: the id of an object -> its files without the bytes that were erased, each with its digest."""
_REMOVING = "removing"
"""The mark of a garbage collection: the ids that it removes. Written before the first of them goes, and removed after the last."""


class Removals(Log):
    """Removals of objects, and the mark of those that a garbage collection removes."""

    def discard(self, object_id: str) -> None:
        """Remove an object, at once as a whole. The caller has made sure that nothing needs it."""
        raise NotImplementedError

    def remove_objects(self, object_ids: Sequence[str]) -> None:
        """Remove objects, in this order, with their keys, verdicts and proofs. The caller holds the store alone.

        They are marked first: what a kill leaves is removed by whoever holds the store next.
        """
        write_value(self.root, _REMOVING, " ".join(object_ids))
        self.finish_removal()

    def is_removing(self) -> bool:
        """Return whether objects are marked. A damaged mark is none: `gc` writes it anew."""
        return bool(self._marked())

    def finish_removal(self) -> None:
        """Remove what is marked, and then the mark."""
        marked = self._marked()
        for object_id in marked:
            self.discard(object_id)
        for path in self.records_of(set(marked)):
            self.storage.remove(path.relative_to(self.root).as_posix())
        for folder in visible(
            [*self.root.glob("objects/*/*"), *map(self.root.joinpath, ("keys", "verdicts", "verified"))]
        ):
            if folder.is_dir():
                sync(folder)
        self.storage.remove(_REMOVING)
        sync(self.root)

    def records_of(self, object_ids: Collection[str]) -> list[Path]:
        """List the verdicts and proofs of objects, and the keys and proofs that name one of them."""
        kinds = ("verdicts/{}.json", "verified/{}", f"{ERASED}/{{}}")
        places = [kind.format(name) for name in sorted(object_ids) for kind in kinds]
        found = [self.root / place for place in places if self.storage.has(place)]
        for folder in ("keys", "verified"):
            self.storage.fetch_all(folder)
        pointers = visible([*self.root.glob("keys/*"), *self.root.glob("verified/*")])
        texts = {path: text_of(path) or "" for path in pointers if path.name not in object_ids}
        return found + [path for path, text in texts.items() if text.partition(" ")[0] in object_ids]

    def bad_mark(self) -> Iterator[str]:
        """Iterate over the damage of the mark: none, or one."""
        try:
            self._read_mark()
        except DamagedError as error:
            yield str(error)

    def _marked(self) -> list[str]:
        try:
            return self._read_mark()
        except DamagedError:
            return []

    def _read_mark(self) -> list[str]:
        found = read_value(
            self.root, _REMOVING, f"the mark of `gc` ({_REMOVING})", "`python -m pipeline gc` removes the rest."
        )
        return (found or "").split()
