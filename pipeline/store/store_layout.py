"""Layout of a store: the version of it, and the names of corpora, runs and refs.

Names become paths in the store, so nothing in them may lead anywhere else.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from pipeline.core.command_line import OutputPath
from pipeline.core.errors import DamagedError, FormatError, MissingError, ParamsError
from pipeline.storage.checked_text import checked_line, refuse_link, text_of, write_value
from pipeline.storage.open_storage import open_folder, storage_of

STORE_FORMAT = 3
"""Version of the store as a whole. Raised when what an earlier version wrote can no longer be read."""
RUNS = "runs"
"""Training runs hold and move refs like corpora do, under this folder; so no corpus may have this name."""
ANCESTOR = "ancestor/"
"""Beginning of the roles of a checkpoint's inputs that shaped its initial weights alone: nothing reads them again."""
INITIALIZED_FROM = "initialized-from"
"""The ref of a run that keeps the checkpoint whose weights it begins with, which is none of its own."""
REPEATED = "repeated"
"""The ref of a run that keeps the checkpoint whose adoptions it repeats, which may be another run's."""
MANIFEST = "manifest.json"
"""Name of the file of an object that says what it is; its SHA-256 is the id."""
_BESIDE_DAGSTER = Path(__file__).parents[2] / "store"
_FORMAT = "format"
_KEPT = "blobs/, names/ and log/withdrawals.jsonl"
_OF_SOURCES = ("blobs", "names", "units")
_OF_OUTPUTS = ("compiled", "ends", "keys", "objects", "rejected", "verdicts", "verified")
_OF_CORPORA = ("log", "refs")
_OWN = frozenset(("format", "locks", "tmp", *_OF_SOURCES, *_OF_OUTPUTS, *_OF_CORPORA))
"""Names in a store that nobody else may write."""
_ID = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def default_store(variables: Mapping[str, str]) -> str:
    """Return the store where no `--store` names one: SLUICE_STORE, a folder or a bucket, else `store/` beside `dagster.yaml`."""
    return variables.get("SLUICE_STORE") or str(_BESIDE_DAGSTER)


def store_folder(text: str) -> Path:
    """Parse the argument `--store`: the folder of a store, for one in a bucket that of its cache.

    Raises FormatError as `refuse_other_format` does, and StoreError for a bucket that cannot be read.
    """
    root = open_folder(text)
    refuse_other_format(root)
    return root


def refuse_other_format(root: Path) -> None:
    """Raise FormatError for a store that is not a folder, or that another version wrote. One without objects has no format yet.

    Raises DamagedError for a format that is not as written.
    """
    if (root.is_symlink() or root.exists()) and not root.is_dir():
        found = "it is a link to nothing" if root.is_symlink() else "it is a file"
        raise FormatError(f"store {root}", found, "a folder, or a new name", "Name another by --store or SLUICE_STORE.")
    storage_of(root).fetch(_FORMAT)
    line = text_of(root / _FORMAT)
    found = ("1" if (root / "objects").is_dir() else str(STORE_FORMAT)) if line is None else line.partition(" ")[0]
    if found.isdigit() and int(found) > STORE_FORMAT:
        remedy = (
            "Use the version of Sluice that wrote it, or a newer one, or name another store by --store or SLUICE_STORE."
        )
        raise FormatError(f"store {root}", f"it has format {found[:20]}", f"at most {STORE_FORMAT}", remedy)
    if found.isdigit() and found != str(STORE_FORMAT):
        raise FormatError(
            f"store {root}",
            f"it has format {found[:20]}",
            f"{STORE_FORMAT}, with other names of columns and other ids",
            f"Move it aside, move its {_KEPT} into the new store, and then build: what is withdrawn stays out, and nothing is "
            "downloaded twice.",
        )
    refuse_link(root / _FORMAT, 1, f"file {_FORMAT} of store {root}", "Correct it.")
    expected = checked_line(_FORMAT, str(STORE_FORMAT))
    if line is not None and (root / _FORMAT).read_bytes() != expected.encode():
        raise DamagedError(f"file {_FORMAT} of store {root}", f"it holds {line!r:.90}", expected.strip(), "Correct it.")


def has_format(root: Path) -> bool:
    """Return whether the format of a store is written: its logs have heads, its one-line files checksums."""
    return (root / _FORMAT).exists()


def refuse_no_store(root: Path) -> None:
    """Raise MissingError for a folder that holds no store, or that is not there."""
    if not has_format(root):
        found = "it holds no store" if root.is_dir() else "there is no such folder"
        raise MissingError(f"store {storage_of(root).address}", found, "a store", "Correct --store, or build first.")


def refuse_outputs_in_store(root: Path, given: Iterable[object]) -> None:
    """Raise ParamsError for an output, of the arguments of a command, that would lie among the own files of the store or of any."""
    for output in (each for each in given if isinstance(each, OutputPath)):
        place = Path(os.path.realpath(output))
        stores = [Path(os.path.realpath(root)), *(folder for folder in place.parents if has_format(folder))]
        below = ((each, place.relative_to(each).parts) for each in stores if each in place.parents)
        holding = next((each for each, parts in below if parts[0] in _OWN or parts == (RUNS,)), None)
        if holding is not None:
            found = f"it is among the own files of the store {holding}"
            raise ParamsError(
                f"output {output}", found, "another place", "Name one, such as a folder beside the store."
            )


def mark_format(root: Path) -> None:
    """Write the format of a new store."""
    write_value(root, _FORMAT, str(STORE_FORMAT))


def is_id(text: str) -> bool:
    """Return whether a text has the form of an object's id."""
    return _ID.fullmatch(text) is not None


def is_name(name: str) -> bool:
    """Return whether a name may be one part of a path in the store. Names that begin with a dot are the store's own."""
    return _NAME.fullmatch(name) is not None


def refuse_bad_corpus(corpus: str) -> None:
    """Raise ParamsError unless `corpus` is the name of a corpus, or `runs/` and the name of a run."""
    name = corpus.removeprefix(f"{RUNS}/")
    if is_name(name) and corpus != RUNS:
        return
    kind = "run" if name != corpus else "corpus"
    raise ParamsError(
        f"{kind} {name[:200]!r}",
        "it is reserved for training runs" if corpus == RUNS else "it is not a valid name",
        "up to 100 letters, digits, dots, underscores and hyphens, the first a letter or digit",
        f"Give the {kind} another name.",
    )


def visible(paths: Iterable[Path]) -> list[Path]:
    """Sort paths and leave out hidden ones: a killed write leaves a hidden temporary file, which is not a ref."""
    return sorted(path for path in paths if not path.name.startswith("."))


def subfolders(folder: str) -> list[str]:
    """List the folders in a folder; none where there is none. `Path.glob` in its place took half of the time of fsck."""
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def missing_object(root: Path, name: str) -> MissingError:
    """Build the error for an id that is missing. Messages show the first digits of an id, so the user may give only those."""
    if is_id(name):
        return MissingError(
            f"object {name[:12]}", "it is not in the store", "an id of one that is", "Build again to make it."
        )
    near: list[str] = []
    if re.fullmatch(r"[0-9a-f]{4,63}", name):
        storage_of(root).fetch_all("objects")
        near = sorted(path.parent.name for path in root.glob(f"objects/*/*/{name}*/{MANIFEST}"))
    remedy = (
        f"Did you mean {' or '.join(near[:3])}?"
        if near
        else (
            "`python -m pipeline show` lists the refs of a corpus, `python -m trainer checkpoints list` those of runs."
        )
    )
    return MissingError(f"object {name[:80]!r}", "it is not an id", "the 64 hex digits of an id, in lower case", remedy)
