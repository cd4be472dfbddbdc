"""JudgedImport: a snapshot of a bundle with the objects that an import would store, judged by what is withdrawn and was erased."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pipeline.build.withdrawal import active_withdrawals, collected_parts, held_files, refuse_withdrawn
from pipeline.core.errors import SnapshotError
from pipeline.core.table_names import FILES
from pipeline.pins.selection import Selectors
from pipeline.removal.withdrawn_parts import parts_with_bytes, withdrawn_parts
from pipeline.stages.stages import kinds_with
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store

_REMEDY = "Import a later snapshot, or take the withdrawal back with `python -m pipeline withdraw --undo`."


def refuse_withdrawn_import(store: Store, snapshot_id: str, object_ids: Collection[str]) -> None:
    """Raise SnapshotError if a snapshot holds what is withdrawn, or one of the objects does: also a file that no stage kept.

    `store` is the one that imports, as it would be with the objects.
    """
    if active_withdrawals(store):
        judged = JudgedImport(store, snapshot_id)
        for object_id in sorted(object_ids):
            judged.refuse_collected(store.read(object_id))
        refuse_withdrawn(store, snapshot_id)


@dataclass(frozen=True)
class JudgedImport:
    """A snapshot that is imported into a store with withdrawals."""

    store: Store
    snapshot_id: str

    def refuse_collected(self, source: StoredObject) -> None:
        """Raise SnapshotError for a collected source with a withdrawn file, or with bytes that were erased here."""
        if source.kind not in kinds_with(FILES) or "revision" not in source.identity:
            return
        name, selectors = source.identity["name"], Selectors(active_withdrawals(self.store))
        parts = parts_with_bytes(self.store, source) if selectors.concern(name) else []
        for each in withdrawn_parts(source, parts, selectors):
            for path in each.paths[:1]:
                by = selectors.matching(name, path, *each.digests) or selectors.all
                self._refuse(source, path, f"{by[0].text} withdraws it")
        for path, text in self._erased(source):
            self._refuse(source, path, f"these bytes were erased here with {text}")

    def _erased(self, source: StoredObject) -> Iterator[tuple[str, str]]:
        """Iterate over the paths of files whose bytes were erased here, under whichever name, and are in no other source."""
        erased = {sha256: each["selectors"][0] for each in self.store.active_receipts() for sha256 in each["digests"]}
        found = {sha256: path for path, sha256 in _files(source) if sha256 in erased}
        kept = self._kept(found) if found else set()
        yield from ((path, erased[sha256]) for sha256, path in found.items() if sha256 not in kept)

    def _kept(self, digests: Collection[str]) -> set[str]:
        """Return the digests that a collected source of the store has under a name that is not withdrawn."""
        selectors, kept = Selectors(active_withdrawals(self.store)), set[str]()
        for source in collected_parts(self.store):
            name = source.identity["name"]
            here = [(path, sha256) for path, sha256 in _files(source) if sha256 in digests]
            kept.update(sha256 for path, sha256 in here if not selectors.matching(name, path, sha256))
        return kept

    def _refuse(self, source: StoredObject, path: str, why: str) -> None:
        found = f"its collected source {source.identity['name']} holds {path}, and {why}"
        raise SnapshotError(f"snapshot {self.snapshot_id[:12]}", found, "nothing that is withdrawn", _REMEDY)


def _files(source: StoredObject) -> Iterator[tuple[str, str]]:
    """Iterate over the files of a collected source and their versions, as path and digest. License texts are anyone's."""
    for row in held_files(source, "num_bytes", "is_evidence"):
        if row["num_bytes"] and not row["is_evidence"]:
            yield row["path"], row["blob_sha256"]
