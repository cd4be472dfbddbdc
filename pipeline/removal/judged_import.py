"""JudgedImport: a snapshot of a bundle with the objects that an import would store, judged by what is withdrawn and was erased."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from pipeline.build.withdrawal import (
    active_withdrawals,
    from_collected,
    held_files,
    refuse_withdrawn,
    snapshot_documents,
)
from pipeline.core.errors import SnapshotError, StoreError
from pipeline.core.table_names import FILES
from pipeline.pins.selection import Selectors
from pipeline.removal.withdrawn_parts import parts_with_bytes, withdrawn_parts
from pipeline.stages.stages import kinds_with
from pipeline.store.objects import StoredObject
from pipeline.store.snapshot import open_snapshot, or_undo
from pipeline.store.store import Store


def refuse_withdrawn_import(store: Store, snapshot_id: str, object_ids: Collection[str]) -> None:
    """Raise SnapshotError if a snapshot holds what is withdrawn, or one of the objects does: also a file that no stage kept.

    `store` is the one that imports, as it would be with the objects.
    """
    if active_withdrawals(store):
        judged = JudgedImport(store, snapshot_id)
        for object_id in sorted(object_ids):
            judged.refuse_collected(store.read(object_id))
        refuse_withdrawn(store, snapshot_id)
        judged.refuse_erased_documents()


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
                self._refuse(f"collected source {name}", path, f"{by[0].text} withdraws it", by[0].text)
        self._refuse_erased(f"collected source {name}", _files(source))

    def refuse_erased_documents(self) -> None:
        """Raise SnapshotError for a document whose bytes were erased here, where the documents came along: rows tell no digests."""
        snapshot = open_snapshot(self.store, self.snapshot_id)
        for source in snapshot.sources if self._erased else ():
            with suppress(StoreError):
                documents = snapshot_documents(snapshot, source, with_digests=True)
                found = [(path, sha256) for _, path, sha256s in documents for sha256 in sha256s]
                self._refuse_erased(f"source {source.name}", found)

    @cached_property
    def _erased(self) -> dict[str, list[str]]:
        """The digests of what was erased here, each with a withdrawal in force that removed it; with all where nothing tells."""
        found: dict[str, list[str]] = {}
        for receipt in self.store.stored_receipts():
            for sha256 in receipt.erased("digests"):
                selectors = sorted(receipt.removed_by(sha256))
                found[sha256] = selectors[:1] if receipt.tells(sha256) else found.get(sha256, selectors)
        return found

    def _refuse_erased(self, holder: str, files: Iterable[tuple[str, str]]) -> None:
        """Raise SnapshotError for a file with bytes that were erased here, under whichever name, and are in no other source."""
        found = {sha256: path for path, sha256 in files if sha256 in self._erased}
        for sha256 in sorted(found.keys() - self._kept(found)):
            first, *others = self._erased[sha256]
            erased = f"these bytes were erased here with {' or '.join([first, *others])}"
            self._refuse(holder, found[sha256], erased, "SELECTOR" if others else first)

    def _kept(self, digests: Collection[str]) -> set[str]:
        """Return the digests that a collected source of the store has under a name that is not withdrawn."""
        selectors = Selectors(active_withdrawals(self.store))

        def kept_in(source: StoredObject) -> set[str]:
            here = [(path, sha256) for path, sha256 in _files(source) if sha256 in digests]
            return {each for path, each in here if not selectors.matching(source.identity["name"], path, each)}

        found, _ = from_collected(self.store, kept_in) if digests else ([], [])
        return set[str]().union(*found)

    def _refuse(self, holder: str, path: str, why: str, selector: str) -> None:
        found, remedy = f"its {holder} holds {path}, and {why}", f"Import a later snapshot, {or_undo(selector)}"
        raise SnapshotError(f"snapshot {self.snapshot_id[:12]}", found, "nothing that is withdrawn", remedy)


def _files(source: StoredObject) -> Iterator[tuple[str, str]]:
    """Iterate over the files of a collected source and their versions, as path and digest. License texts are anyone's."""
    for row in held_files(source, "num_bytes", "is_evidence"):
        if row["num_bytes"] and not row["is_evidence"]:
            yield row["path"], row["blob_sha256"]
