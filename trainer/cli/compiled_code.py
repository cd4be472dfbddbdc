"""The commands about compiled code: `cache status`, `cache sync` and `triage`."""

import argparse
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.core.command_line import file_path, whole_number
from trainer.cli.arguments import add_command, add_snapshot_arguments, open_store, report, snapshot_id
from trainer.config.choices import CompileMode

if TYPE_CHECKING:
    from trainer.compile.cache import CacheStatus


def add_commands(commands: Any) -> None:
    """Declare the commands of this group."""
    verbs = commands.add_parser("cache", help="compiled code: status, sync").add_subparsers(
        required=True, metavar="VERB"
    )
    add_command(verbs, "status", _status, "folder, size, free space, hash and hits")
    sync = add_command(verbs, "sync", _sync, "copy a populated cache into the store")
    sync.add_argument("--from", dest="source", type=file_path, required=True, help="a store, or its folder `compiled`")
    add_snapshot_arguments(sync, "quick")
    triage = add_command(commands, "triage", _triage, "diagnose compilation from a log", needs_store=False)
    triage.add_argument(
        "--log", type=file_path, help="a file with the output of a run; without it, the steps of a diagnosis are listed"
    )
    triage.add_argument("--run", action="store_true", help="without a log: run those steps with the smallest model")
    triage.add_argument("--metrics", type=file_path, help="metrics.jsonl of that run: whether steps became slower")
    triage.add_argument(
        "--compile",
        choices=[str(mode) for mode in CompileMode if mode is not CompileMode.OFF],
        default="fullgraph",
        help="compile mode of that run",
    )
    triage.add_argument("--breaks", type=whole_number(0, 10_000), help="graph breaks that its budget allows")


def _status(options: argparse.Namespace) -> dict[str, Any]:
    from trainer.compile import cache

    found = cache.status(cache.place_of(["--store", open_store(options).storage.address], os.environ))
    _report_status(found)
    return asdict(found)


def _sync(options: argparse.Namespace) -> dict[str, Any]:
    from pipeline.store.snapshot import open_snapshot
    from trainer.compile import cache

    snapshot = open_snapshot(open_store(options), snapshot_id(options))
    inner: Path = options.source / "compiled"
    source = inner if inner.is_dir() else options.source
    place = cache.place_of(["--store", open_store(options).storage.address], os.environ)
    answer = cache.copy_cache(source, place, snapshot.vocabulary["sha256"])
    report(["copied" if answer["copied"] else "equal already: nothing was copied"])
    _report_status(cache.status(place))
    return answer


def _report_status(found: "CacheStatus") -> None:
    free = f"{found.num_free_bytes / 1e9:,.1f} GB"
    facts = {
        "folder": f"{found.place}{'' if found.is_writable else ', NOT WRITABLE'}",
        "size": f"{found.num_bytes / 1e6:,.1f} MB in {found.num_files:,} files; free: {free}",
        "hash": found.sha256 or "missing: the cache is empty",
        "vocabulary": found.vocabulary_sha256 or "not known",
        "hits": f"{found.hits:,} of {found.hits + found.misses:,} look-ups",
    }
    report(f"{name:<10}  {value}" for name, value in facts.items())


def _triage(options: argparse.Namespace) -> Any:
    from trainer.bench.triage import triage

    return triage(options)
