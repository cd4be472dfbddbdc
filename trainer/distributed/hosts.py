"""Hosts of a training: what ranks on several of them must have in common, compared before the first step."""

import secrets
import shutil
from pathlib import Path

import kernels
import pipeline
import trainer
from pipeline.core.digests import code_digest
from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from trainer.distributed.ranks import Ranks

_SESSION = "session"


def require_same_code(ranks: Ranks) -> None:
    """Raise TrainingError, on every rank, unless all run the same code. Versions of libraries are compared with the environment."""
    if ranks.count > 1:
        packages = [Path(each.__path__[0]) for each in (kernels, pipeline, trainer)]
        ranks.require_agreement({f"code of {path.name}": code_digest(path)[:12] for path in packages})


def own_scratch(store: Store, place: Path, ranks: Ranks) -> Path:
    """Return the folder of a sharded rank for what it writes, empty, given that of the first one, as a place in the store.

    Raises TrainingError on every rank if one does not see that folder: a checkpoint of which each writes a part needs one store.
    """
    first = store.root / place
    token = ranks.first(lambda: _write_token(first))
    seen = store.storage.is_shared or _read_token(first) == token
    views = ranks.all_gather((store.storage.address, seen))
    for rank, (address, is_seen) in enumerate(views):
        if not is_seen or (store.storage.is_shared and address != views[0][0]):
            found = f"{ranks.names()[rank]} has {address}, and does not see there what rank 0 has written"
            raise TrainingError(f"store {views[0][0]}", found, "one store for all ranks", _ONE_STORE)
    if not ranks.rank:
        return first
    own = first / f"rank-{ranks.rank}"
    shutil.rmtree(own, ignore_errors=True)
    return own


def _write_token(folder: Path) -> str:
    token = secrets.token_hex(8)
    (folder / _SESSION).write_text(token, encoding="utf-8")
    return token


def _read_token(folder: Path) -> str:
    try:
        return (folder / _SESSION).read_text(encoding="utf-8")
    except OSError:
        return ""


_ONE_STORE = "Name a folder that all hosts share, at the same path, or a store in a bucket."
