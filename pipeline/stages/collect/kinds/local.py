"""The source kind `local`: a folder on this machine."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pipeline.contracts.part import PartJob
from pipeline.core.errors import SourceError
from pipeline.pins.local_tree import TreeEntry, check_tree, combine_digests, printable_path, tree_digest, tree_entries
from pipeline.pins.pins import DIGEST_FORM, PlainPath, Sha256, SourcePin
from pipeline.pins.selection import Selection
from pipeline.stages.collect.contents import ReadFile, ReadOptions, SkippedFile, SourceContents, over_limit
from pipeline.stages.collect.kinds.source_kind import Fetcher, SourceKind
from pipeline.stages.collect.listing import ListedName, list_folder


class LocalPin(SourcePin):
    """A folder, relative to the pins file, whose `digest` is that of `local_tree.tree_digest`."""

    kind: Literal["local"] = "local"
    path: PlainPath
    digest: Sha256

    locator_fields: ClassVar[frozenset[str]] = frozenset({"path"})
    revision_field: ClassVar[str] = "digest"

    @classmethod
    def hint(cls, field: str, entry: Mapping[str, Any]) -> tuple[str, str]:
        """Return the digest to paste if the pin's is missing or malformed."""
        return (DIGEST_FORM, _digest_remedy(entry)) if field == "digest" else super().hint(field, entry)


def _digest_remedy(entry: Mapping[str, Any]) -> str:
    globs = [entry.get(field, ()) for field in ("include", "exclude")]
    if not isinstance(entry.get("path"), Path) or not all(isinstance(glob, list | tuple) for glob in globs):
        return "Add the `path` too; the message then shows the digest of its tree."
    try:
        found = tree_digest(entry["path"], Selection(*globs))
    except SourceError as error:
        return f"It could not be computed: {error}"
    return f'Review the tree, then write digest = "{found}", its digest now.'


def _fetch(pin: LocalPin, fetcher: Fetcher) -> Path:
    # A tree can change under a pin, so every run checks its digest, also one that reuses the part.
    check_tree(pin.name, tree_digest(pin.path, pin.selection()), pin.digest)
    return pin.path


def _read(job: PartJob, root: Path, options: ReadOptions) -> SourceContents:
    # The digest is computed again from the bytes that are used, so that a change since the fetch is found.
    entries = tree_entries(root, options.selection)
    total_bytes, limits = sum(entry.num_bytes for entry in entries), options.limits
    if len(entries) > limits.max_members or total_bytes > limits.max_total_bytes:
        found = f"its tree has {len(entries)} entries and {total_bytes} bytes"
        raise over_limit(job.name, found, f"{limits.max_members} entries and {limits.max_total_bytes} bytes")
    items: list[ReadFile | SkippedFile] = []
    digests: list[tuple[TreeEntry, str]] = []
    for entry in entries:
        item = options.take(entry.path, entry.num_bytes, entry.read, entry.skipped, entry.target)
        items.append(item)
        digests.append((entry, entry.sha256() if item.content is None else hashlib.sha256(item.content).hexdigest()))
    check_tree(job.name, combine_digests(digests), job.identity["revision"])
    return SourceContents.of(items)


def _propose(path: Path) -> dict[str, str] | None:
    return None if path.is_file() else {"path": str(path), "digest": tree_digest(path)}


def _listing(pin: Mapping[str, Any], root: Path, num_bytes: int) -> Iterator[ListedName]:
    """Yield what is selected in the folder: no digest holds the rest, so that it is not part of the source."""
    selection = Selection(pin["include"], pin["exclude"])
    return list_folder(root, lambda name: selection.accepts(printable_path(os.fsdecode(name))))


def _newest(pin: LocalPin, fetcher: Fetcher) -> dict[str, str]:
    found = tree_digest(pin.path, pin.selection())
    return {} if found == pin.digest else {"digest": found}


KIND = SourceKind(LocalPin, _fetch, _read, _propose, max_expansion=1, listing=_listing, newest=_newest)
