"""Opening of storages: the one that `--store` names, and the one of a folder."""

import re
from pathlib import Path

from pipeline.core.errors import StoreError
from pipeline.storage.storage import CACHE_MARK, Storage

BUCKET_SCHEME = "s3://"
"""The beginning of the address of a store in a bucket."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://")
_OPEN: dict[Path, Storage] = {}
"""The storages of this process, by the folder of each."""


def storage_of(root: Path) -> Storage:
    """Return the storage of the store whose files are read at `root`."""
    found = _OPEN.get(root)
    if found is None:
        found = _OPEN[root] = _bucket(root) if (root / CACHE_MARK).is_file() else Storage(root)
    return found


def open_folder(text: str) -> Path:
    """Return the folder of the store that `--store` names: itself, or the cache of a bucket. Raises StoreError, ParamsError."""
    if not text.strip():
        found, expected = (
            "it has no name, as that of a variable that is not set",
            "a folder, such as `.` for the one here",
        )
        raise StoreError(f"store {text!r}", found, expected, "Correct --store or SLUICE_STORE.")
    if not text.startswith(BUCKET_SCHEME):
        if _ADDRESS.match(text):
            expected = f"a folder, or {BUCKET_SCHEME}BUCKET/PREFIX"
            raise StoreError(
                f"store {text}", "it is an address of another kind", expected, "Correct --store or SLUICE_STORE."
            )
        return Path(text)
    from pipeline.storage.bucket import Bucket, cache_of

    root = cache_of(text)
    if not isinstance(_OPEN.get(root), Bucket):
        _OPEN[root] = Bucket(root)
    _OPEN[root].refresh()
    return root


def _bucket(root: Path) -> Storage:
    from pipeline.storage.bucket import Bucket

    return Bucket(root)
