"""Given items: the evaluation items of a user's folder, kept in the store, so that what they decided can be made again.

They are a blob that is named by the digest of all items, which is in the identity of what depends on them. The folder is not.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from pipeline.build.recipes import CorpusParams, with_items
from pipeline.core.errors import MissingError
from pipeline.core.params import canonical_json
from pipeline.stages.normalize.contamination.evaluation_items import digest_of_items, items_in
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store

_FILE = "given.jsonl"


def keep_items(store: Store, params: CorpusParams) -> None:
    """Keep the items of the folder that a build is given, if it is. Raises ParamsError for items that cannot be read."""
    given = params.normalize.decontamination.items_folder
    if given is None:
        return
    name = _name(digest_of_items(given))
    if store.named_blob(name) is None:
        content = b"".join(canonical_json(asdict(item)) + b"\n" for item in items_in(Path(given)))
        sha256 = hashlib.sha256(content).hexdigest()
        store.put_blob([content], sha256, f"evaluation items in {given}")
        store.name_blob(name, sha256)


def with_kept_items(store: Store, params: CorpusParams, snapshot: StoredObject, folder: Path) -> CorpusParams:
    """Return Params with the items that a snapshot was built with, written below `folder`. Raises MissingError."""
    names = names_of_items(store, snapshot)
    if not names:
        return params
    found = store.named_blob(names[0])
    if found is None:
        what = f"evaluation items {names[0].rpartition('/')[2][:12]} of snapshot {snapshot.object_id[:12]}"
        remedy = "Build again with the same `--evaluation-items`, and promote that."
        raise MissingError(what, "they are not in the store", "", remedy)
    folder.mkdir()
    (folder / _FILE).write_bytes(found.read_bytes())
    return with_items(params, folder)


def names_of_items(store: Store, snapshot: StoredObject) -> list[str]:
    """Return the names of the items that a snapshot was built with, but for those that come with the pipeline."""
    return [_name(each) for each in sorted(set(_digests(store, snapshot)) - {digest_of_items(None)})]


def _digests(store: Store, snapshot: StoredObject) -> Iterator[str]:
    """Iterate over the digests of evaluation items that the sources of a snapshot were compared with."""
    for label, object_id in snapshot.manifest.inputs.items():
        if label.startswith("rules/"):
            yield str(store.read(object_id).manifest.identity["evaluation_sha256"])


def _name(sha256: str) -> str:
    return f"evaluation/{sha256}"
