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

from collections.abc import Callable, Iterator
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


class Store(Refs, Blobs, Verdicts):
    """A store under `root`. `clock` gives the time written into verdicts and logs, never into an id."""

    def __init__(self, root: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.root = root
        self.clock = clock
        self.storage = storage_of(root)
        refuse_other_format(root)

    def active_receipts(self) -> Iterator[dict[str, Any]]:
        """Iterate over the receipts of erasures whose withdrawals were not taken back. `fsck` names damaged ones."""
        active = set(self.active_withdrawals())
        for receipt in sorted(self.receipts()):
            try:
                content: dict[str, Any] = self.read(receipt).json(RECEIPT)
            except StoreError:
                continue
            if active.issuperset(content["selectors"]):
                yield content
