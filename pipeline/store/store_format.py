"""The version of a store's layout, and reading names from its small files."""

from collections.abc import Iterable
from pathlib import Path

from pipeline.core.durable import make_folder, replace
from pipeline.core.errors import FormatError

STORE_FORMAT = 2
"""Version of the store as a whole. Raised when what an earlier version wrote can no longer be read."""
_FORMAT = "format"
_KEPT = "blobs/, names/ and log/withdrawals.jsonl"


def refuse_other_format(root: Path) -> None:
    """Raise FormatError for a store that another version of Sluice wrote. One without objects has no format yet."""
    found = text_of(root / _FORMAT) or ("1" if (root / "objects").is_dir() else str(STORE_FORMAT))
    if found != str(STORE_FORMAT):
        raise FormatError(
            f"store {root}",
            f"it has format {found[:20]}",
            f"{STORE_FORMAT}, with other names of columns and other ids",
            f"Move it aside and build again. Its {_KEPT} can be moved into the new store: nothing is downloaded twice.",
        )


def mark_format(root: Path) -> None:
    """Write the format of a new store."""
    if not (root / _FORMAT).exists():
        make_folder(root)
        replace(root / _FORMAT, f"{STORE_FORMAT}\n".encode())


def text_of(path: Path) -> str | None:
    """Return the text of a ref, a key or a name without its line end, or None if there is no such file."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None


def visible(paths: Iterable[Path]) -> list[Path]:
    """Sort paths and leave out hidden ones: a killed write leaves a hidden temporary file, which is not a ref."""
    return sorted(path for path in paths if not path.name.startswith("."))
