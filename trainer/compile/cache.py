"""Cache of compiled code, in the store by default. `status` reports cache hits; `sync` copies a populated cache.

    <store>/compiled/inductor, <store>/compiled/triton      written by torch and Triton; the sha256 over names and bytes is the hash
    <store>/compiled/vocabulary.sha256                       the vocabulary of the runs that filled it: shapes depend on its size
    <store>/compiled/hits.jsonl                              hits and misses, a line a run; not part of the hash

Does not import torch: the environment must be set before that.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline.core.digests import file_sha256, text_sha256
from pipeline.core.durable import hidden_sibling, replace
from pipeline.core.errors import StoreError
from pipeline.core.file_locks import held
from pipeline.storage.open_storage import BUCKET_SCHEME
from pipeline.store.store_layout import default_store

CACHE_FOLDERS = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}
SWITCHES = {
    "TORCHINDUCTOR_FX_GRAPH_CACHE": "1",
    "TORCHINDUCTOR_AUTOGRAD_CACHE": "1",
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM": "0",
}
OF_RANKS = {
    "TORCH_NCCL_ENABLE_MONITORING": "0",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "7200",
    "TORCH_DISTRIBUTED_DEFAULT_TIMEOUT": "7200",
}
"""Under torchrun: a rank that compiles longer than the others must not be taken for one that hangs."""
_VOCABULARY, _HITS, _LOCK = "vocabulary.sha256", "hits.jsonl", ".lock"


@dataclass(frozen=True)
class CacheStatus:
    """State of a cache. `sha256` is None if it is empty, `vocabulary_sha256` if no run recorded one."""

    place: str
    num_files: int
    num_bytes: int
    num_free_bytes: int
    is_writable: bool
    sha256: str | None
    vocabulary_sha256: str | None
    hits: int
    misses: int


def variables_of(arguments: list[str], before: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return the variables to add to `before`, and a warning, empty unless a private temporary folder is used."""
    added = {name: value for name, value in SWITCHES.items() if name not in before}
    if "LOCAL_RANK" in before:
        added |= {name: value for name, value in OF_RANKS.items() if name not in before}
    wanted = [name for name in CACHE_FOLDERS if name not in before]
    root, warning = place_of(arguments, before), ""
    if wanted and not is_writable(root):
        refused, root = root, Path(tempfile.mkdtemp(prefix="sluice-compiled-"))
        warning = f"warning: compiled code cannot be kept in {refused}, which is not writable; it goes to {root}"
    return added | {name: str(root / CACHE_FOLDERS[name]) for name in wanted}, warning


def place_of(arguments: list[str], before: Mapping[str, str]) -> Path:
    """Return the cache of a command line: inside its store, if that is a folder, else ~/.cache/sluice."""
    store = default_store(before)
    for place, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if name == "--store" and (value or place + 1 < len(arguments)):
            store = value or arguments[place + 1]
            break
    in_bucket = store.startswith(BUCKET_SCHEME)
    return Path.home() / ".cache" / "sluice" if in_bucket else Path(store).absolute() / "compiled"


def is_writable(place: Path) -> bool:
    """Return whether a folder is writable or, if it does not exist, can be created."""
    try:
        with tempfile.TemporaryFile(dir=_nearest(place)):
            return True
    except OSError:
        return False


def status(place: Path) -> CacheStatus:
    """Return the state of a cache."""
    files = list(_files(place))
    runs = [json.loads(line) for line in _read_lines(place / _HITS)]
    num_bytes = sum((place / name).stat().st_size for name in files)
    num_free = shutil.disk_usage(_nearest(place)).free
    vocabulary = next(iter(_read_lines(place / _VOCABULARY)), None)
    hits, misses = (sum(run[kind] for run in runs) for kind in ("hits", "misses"))
    numbers = (len(files), num_bytes, num_free)
    return CacheStatus(str(place), *numbers, is_writable(place), _digest(place, files), vocabulary, hits, misses)


def copy_cache(source: Path, place: Path, vocabulary_sha256: str) -> dict[str, Any]:
    """Copy a populated cache, under a lock, whole or not at all. Nothing is copied if the hashes are equal.

    Raises StoreError if the source is empty or of another vocabulary, or the place is not writable.
    """
    warm = status(source)
    if warm.sha256 is None:
        remedy = "Train once with --compile fullgraph."
        raise StoreError(f"cache {source}", "it holds no compiled code", "a populated one", remedy)
    if warm.vocabulary_sha256 != vocabulary_sha256:
        found = f"its vocabulary is {warm.vocabulary_sha256}"
        remedy = "Fill one with this vocabulary: code of another size cannot be reused."
        raise StoreError(f"cache {source}", found, vocabulary_sha256, remedy)
    if not is_writable(place):
        raise StoreError(f"cache {place}", "it is not writable", "", "Name another store, or change its permissions.")
    place.mkdir(parents=True, exist_ok=True)
    with held(place / _LOCK):
        is_equal = status(place).sha256 == warm.sha256
        if not is_equal:
            _copy(source, place)
            replace(place / _VOCABULARY, f"{vocabulary_sha256}\n".encode())
    return {"copied": not is_equal, **asdict(status(place))}


def record(place: Path, vocabulary_sha256: str, hits: int, misses: int) -> None:
    """Record the cache hits of a run, and its vocabulary."""
    if not place.is_dir() or not is_writable(place):
        return
    with held(place / _LOCK):
        replace(place / _VOCABULARY, f"{vocabulary_sha256}\n".encode())
        with (place / _HITS).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"hits": hits, "misses": misses}) + "\n")


def record_run(vocabulary_sha256: str) -> None:
    """Record the hits of this process, from torch's counters, in the cache that its environment names."""
    from torch._dynamo.utils import counters

    found = counters["inductor"] + counters["aot_autograd"]
    hits, misses = (sum(found[f"{name}_cache_{kind}"] for name in ("fxgraph", "autograd")) for kind in ("hit", "miss"))
    folder = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if folder:
        record(Path(folder).parent, vocabulary_sha256, hits, misses)


def _copy(source: Path, place: Path) -> None:
    for folder in CACHE_FOLDERS.values():
        target, made, old = place / folder, hidden_sibling(place / folder), hidden_sibling(place / folder)
        if (source / folder).is_dir():
            shutil.copytree(source / folder, made)
        else:
            made.mkdir()
        if target.exists():
            target.rename(old)
        made.rename(target)
        shutil.rmtree(old, ignore_errors=True)


def _nearest(place: Path) -> Path:
    """Return the nearest folder above a path that exists, or the path itself."""
    return next(path for path in (place, *place.parents) if path.exists())


def _files(place: Path) -> Iterator[str]:
    for folder in sorted(CACHE_FOLDERS.values()):
        for path in sorted((place / folder).rglob("*")):
            # Locks and unfinished writes are not compiled code.
            if path.is_file() and not path.is_symlink() and path.suffix not in {".lock", ".tmp"}:
                yield path.relative_to(place).as_posix()


def _digest(place: Path, files: list[str]) -> str | None:
    text = "".join(f"{name}\0{file_sha256(place / name)}\0" for name in files)
    return text_sha256(text) if files else None


def _read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
