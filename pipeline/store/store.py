"""The store: stage outputs by content, like git. The only package that writes them.

    blobs/<sha256>                 archives, as received            rejected/<sha256>   bytes that were not the pinned ones
    names/<what>/<name>            -> a blob, for bytes known by another name: the pack of a git commit, evaluation items
    objects/<stage>/<what>/<id>/   tables, report.json, and manifest.json written last; a folder without it does not exist
    refs/<corpus>/<name>           the promoted id of a stage, `last`, `candidate`, `live`; refs/runs/<run>/latest
    keys/<key>                     a piece of work -> the id of its output: unchanged work is recognized before it is done
    verified/<id>                  a snapshot -> the stage that verified it
    erased/<id>                    the files of an object from which bytes were erased -> their digests since, as its receipt says
    verdicts/<id>.json             what the gates measured and decided
    log/promotions.jsonl           every move of a ref, append-only; log/promotions.head: its end, and those of the other logs
    log/withdrawals.jsonl          what no corpus of this store may hold any more, append-only, with its head
    log/blobs.jsonl                every blob, name and removal of a blob, append-only, with its head
    ends                           the ends of the three logs, so that all of log/ from an older copy is found
    removing                       the objects that a garbage collection is removing, until the last is gone
    locks/  tmp/                   one flock a corpus, one of all who read or write; what is being written, downloads in tmp/.blobs
    format                         the version of this layout and of its ids: a store of another one is refused

An object's id is the SHA-256 of its manifest, so equal inputs give equal ids on any machine. A write goes to a temporary
sibling, is synced, and is renamed: a process killed anywhere leaves the old state or the new one.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.core.errors import StoreError
from pipeline.storage.open_storage import storage_of
from pipeline.store.blobs import Blobs
from pipeline.store.log import RECEIPT
from pipeline.store.refs import Refs
from pipeline.store.store_layout import refuse_other_format
from pipeline.store.verdicts import Verdicts


@dataclass(frozen=True)
class StoredReceipt:
    """Receipt of an erasure as the store holds it, asked by digest: of a file, an archive, a revision, or a table as it was.

    `withdrawn` are the selectors that are withdrawn now.
    """

    content: Mapping[str, Any]
    withdrawn: frozenset[str]

    def removed_by(self, digest: str) -> frozenset[str]:
        """Return the withdrawals in force that removed it: none where it is not erased any more, or went for a person."""
        return self._selectors_of(digest) & self.withdrawn

    def tells(self, digest: str) -> bool:
        """Return whether it says what removed it, as a receipt of an earlier version of several withdrawals does not."""
        return digest in self.content.get("removed_by", {}) or len(self.content["selectors"]) == 1

    def is_erased(self, digest: str) -> bool:
        """Return whether it must not be here: one of the withdrawals that removed it is in force.

        What went for a person, and not by a selector, stays erased: no withdrawal is there that could be taken back.
        """
        selectors = self._selectors_of(digest)
        return not selectors or not selectors.isdisjoint(self.withdrawn)

    def erased(self, *fields: str) -> list[str]:
        """List what these fields name and must not be here, sorted."""
        return sorted(digest for field in fields for digest in self.content.get(field, ()) if self.is_erased(digest))

    def _selectors_of(self, digest: str) -> frozenset[str]:
        """Return the selectors that removed it.

        A receipt of an earlier version does not tell: all that it lists stays erased while one of its selectors is withdrawn. To
        name what may be here again is the safe side, and the last undo ends it.
        """
        return frozenset(self.content.get("removed_by", {}).get(digest, self.content["selectors"]))


class Store(Refs, Blobs, Verdicts):
    """A store under `root`. `clock` gives the time written into verdicts and logs, never into an id."""

    def __init__(self, root: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.root = root
        self.clock = clock
        self.storage = storage_of(root)
        refuse_other_format(root)

    def stored_receipts(self) -> Iterator[StoredReceipt]:
        """Iterate over the receipts of erasures. `fsck` names damaged ones."""
        withdrawn = frozenset(self.active_withdrawals())
        for receipt in sorted(self.receipts()):
            with suppress(StoreError):
                yield StoredReceipt(self.read(receipt).json(RECEIPT), withdrawn)
