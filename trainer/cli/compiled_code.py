"""The commands around compiled code: `cache status|sync`. Each returns what `--json` prints, and tells people on stderr."""

import argparse
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline.store.snapshot import open_snapshot, resolve
from pipeline.store.store import Store
from trainer.compile import cache as compile_cache


def cache_status(options: argparse.Namespace) -> dict[str, Any]:
    """How warm the place of compiled code is."""
    arguments = ["--store", str(options.store)] if options.store else []
    found = compile_cache.status(compile_cache.place_of(arguments, os.environ))
    _say(found)
    return asdict(found)


def cache_sync(options: argparse.Namespace) -> dict[str, Any]:
    """Bring a warm cache into the store."""
    store = Store(options.store)
    snapshot = open_snapshot(store, resolve(store, options.corpus, options.snapshot))
    source: Path = options.source
    source = source / "compiled" if (source / "compiled").is_dir() else source
    place = compile_cache.place_of(["--store", str(options.store)], os.environ)
    answer = compile_cache.sync(source, place, snapshot.vocabulary["sha256"])
    print("copied" if answer["copied"] else "equal already: nothing was copied", file=sys.stderr)
    _say(compile_cache.status(place))
    return answer


def _say(found: compile_cache.CacheStatus) -> None:
    lines = [
        f"place   {found.place}{'' if found.is_writable else ', NOT WRITABLE'}",
        f"size    {found.num_bytes / 1e6:,.1f} MB in {found.num_files:,} files; free: {found.num_free_bytes / 1e9:,.1f} GB",
        f"hash    {found.sha256 or 'none: it is cold'}",
        f"words   vocabulary {found.vocabulary_sha256 or 'not known'}",
        f"hits    {found.hits:,} of {found.hits + found.misses:,} look-ups",
    ]
    print("\n".join(lines), file=sys.stderr)
