"""Slopes of a build: what 1, 4 and 16 times the bytes cost, by stage, in processor time, objects, files, bytes and requests.

The corpus is made of the quick slice, in shards of at most 1 MB, so that a corpus of a few megabytes has as many as a large one.
Processor time is that of the build and its workers together, which other programs on the machine change little; a stage has the
share of it that it has of the seconds.
"""

import json
import os
import resource
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pipeline.formats.tables import SHARD_LABEL
from pipeline.stages.stages import STAGES
from tests.benchmarks.figure import Figure
from tests.benchmarks.pipeline.large_sources.made_texts import made_texts
from tests.benchmarks.pipeline.large_sources.one_source import write_recipe
from tests.benchmarks.pipeline.slices import scratch, texts
from tests.support.paths import ROOT

NUM_BYTES = (2_000_000, 8_000_000, 32_000_000)
MAX_SHARD_BYTES = 1_000_000
SHARDS = (f"collect.max_shard_bytes={MAX_SHARD_BYTES}", f"collect.min_shard_bytes={MAX_SHARD_BYTES // 2}")
NUM_AGAIN = 3
_METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE")


@dataclass(frozen=True)
class BuiltCorpus:
    """A corpus, what its build made, and what that took."""

    num_bytes: int
    num_documents: int
    num_shards: int
    seconds: Mapping[str, float]
    """Processor seconds by stage."""
    unchanged_seconds: float
    """Of a second build that finds everything made, in one process."""
    objects: Mapping[str, int]
    files: Mapping[str, int]
    stored: Mapping[str, int]
    """Bytes by stage."""
    inputs_bytes: int
    """Bytes of the manifest that lists the shards of the source in one stage."""


def slopes() -> list[Figure]:
    """Costs of a build of 16 times the bytes beyond those of one of 4 times, for each byte, shard and object, and how they grow."""
    small, middle, large = map(built_corpus, NUM_BYTES)
    num_bytes, num_shards = large.num_bytes - middle.num_bytes, large.num_shards - middle.num_shards
    figures = [
        Figure(
            "slopes",
            float(len(NUM_BYTES)),
            f"builds of made corpora, {NUM_BYTES[0] / 1e6:g} to 32 MB",
            "reported",
            True,
        ),
        Figure(
            "slopes/document-bytes", round(large.num_bytes / large.num_documents), "bytes a document", "reported", True
        ),
        Figure(
            "slopes/shard-fill",
            round(num_bytes / num_shards / MAX_SHARD_BYTES, 3),
            "of the largest shard",
            "reported",
            True,
        ),
    ]
    for stage in STAGES.names:
        seconds = large.seconds[stage] - middle.seconds[stage]
        objects = large.objects[stage] - middle.objects[stage]
        values = {
            "seconds": (seconds / num_bytes * 1e6, "processor seconds a MB"),
            "growth": (_growth(small, middle, large, stage), "times the seconds a byte from 8 MB on, of those before"),
            "objects": (objects / num_shards, "objects a shard"),
            "files": ((large.files[stage] - middle.files[stage]) / max(objects, 1), "files an object"),
            "stored": ((large.stored[stage] - middle.stored[stage]) / num_bytes, "bytes stored a byte"),
        }
        figures += [
            Figure(f"slopes/{stage}/{name}", round(value, 4), unit, "reported", True)
            for name, (value, unit) in values.items()
        ]
    parts = sum(large.objects.values()) - sum(middle.objects.values())
    again = (large.unchanged_seconds - middle.unchanged_seconds) / parts
    listed = (large.inputs_bytes - middle.inputs_bytes) / num_shards
    return [
        *figures,
        Figure("slopes/unchanged", round(again, 5), "s an object, in the process that builds", "reported", True),
        Figure("slopes/listed", round(listed, 1), "bytes a shard in the manifest of a stage", "reported", True),
    ]


def requests() -> list[Figure]:
    """Requests of a build against a bucket, an object, and of one that finds everything made; no listing grows with the store."""
    if not all(map(find_spec, ("obstore", "moto"))):
        absent = "obstore, moto: not installed: make cluster-tests"
        return [Figure("requests", None, "requests an object", "reported", None, peer=absent)]
    small, large = map(_requests_of, NUM_BYTES[:2])
    objects = large.num_objects - small.num_objects
    figures = []
    for name, before, after in (
        ("requests", small.fresh, large.fresh),
        ("requests/unchanged", small.unchanged, large.unchanged),
    ):
        whole = (after.total() - before.total()) / objects
        figures.append(Figure(name, round(whole, 2), f"requests an object, of {objects} more", "reported", True))
        for method in _METHODS:
            value = (after[method] - before[method]) / objects
            figures.append(Figure(f"{name}/{method}", round(value, 2), "an object", "reported", True))
    return figures


@cache
def built_corpus(num_bytes: int) -> BuiltCorpus:
    """Build a made corpus of so many bytes twice in one process, once a run, and count what it stored."""
    root, recipe = scratch() / f"slopes-{num_bytes}", made_recipe(num_bytes)
    before = _processor_seconds()
    answer = _build(root, recipe)
    seconds = _processor_seconds() - before
    by_stage = {str(each["name"]): float(each["seconds"]) for each in answer["stages"]}
    unchanged = min(_seconds_of_another(root, recipe) for _ in range(NUM_AGAIN))
    manifests = {stage: list((root / "objects" / stage).rglob("manifest.json")) for stage in STAGES.names}
    stored = {stage: [path for each in found for path in each.parent.iterdir()] for stage, found in manifests.items()}
    lines = (scratch() / f"slopes-{num_bytes}.jsonl").read_text().splitlines()
    return BuiltCorpus(
        num_bytes=sum(len(json.loads(line)["text"]) for line in lines),
        num_documents=len(lines),
        num_shards=_num_shards(manifests["collect"]),
        seconds={stage: seconds * part / sum(by_stage.values()) for stage, part in by_stage.items()},
        unchanged_seconds=unchanged,
        objects={stage: len(found) for stage, found in manifests.items()},
        files={stage: len(found) for stage, found in stored.items()},
        stored={stage: sum(path.stat().st_size for path in found) for stage, found in stored.items()},
        inputs_bytes=max(path.stat().st_size for path in manifests["collect"] if SHARD_LABEL in path.read_text()),
    )


def made_recipe(num_bytes: int) -> Path:
    """Write a source of so many bytes and a recipe of it; return the recipe's path."""
    path = scratch() / f"slopes-{num_bytes}.jsonl"
    real = {place: text for place, text in texts("quick").items() if 1_000 <= len(text) <= 200_000 and text.isascii()}
    with path.open("w", encoding="utf-8") as file:
        for place, text in made_texts(real, num_bytes, "round"):
            file.write(json.dumps({"path": place, "text": text, "license": "MIT"}) + "\n")
    return write_recipe([path])


@dataclass(frozen=True)
class _Requests:
    """Requests of two builds, by method, and the objects that the first made."""

    fresh: "Counter[str]"
    unchanged: "Counter[str]"
    num_objects: int


def _requests_of(num_bytes: int) -> _Requests:
    with _counted_bucket() as (endpoint, counts):
        cache_folder = scratch() / f"cache-{num_bytes}"
        variables = {"SLUICE_CACHE": str(cache_folder), **_credentials()}
        address = f"s3://sluice/of-{num_bytes}?endpoint={endpoint}"
        found = []
        for _ in range(2):
            before = counts.copy()
            _build(address, made_recipe(num_bytes), variables)
            found.append(counts - before)
        num_objects = len([path for path in cache_folder.rglob("manifest.json") if "objects" in path.parts])
    return _Requests(*found, num_objects)


@contextmanager
def _counted_bucket() -> "Iterator[tuple[str, Counter[str]]]":
    """Yield the address of moto's server behind a proxy that counts requests by method."""
    from tests.pipeline.storage.s3_server import faulty_proxy, make_bucket, s3_server

    counts: Counter[str] = Counter()
    lock = threading.Lock()

    def count(number: int, method: str, path: str) -> str:
        with lock:
            counts[method] += 1
        return ""

    with s3_server() as server, faulty_proxy(server, count) as endpoint:
        make_bucket(server, "sluice")
        yield endpoint, counts


def _credentials() -> dict[str, str]:
    from tests.pipeline.storage.s3_server import CREDENTIALS

    return CREDENTIALS


def _build(store: "Path | str", recipe: Path, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Build in one process, and return what the command printed."""
    options = ["--recipe", str(recipe), "--workers", "1", "--store", str(store), "--no-report", "--json"]
    settings = [word for each in SHARDS for word in ("--set", each)]
    line = [sys.executable, "-m", "pipeline", "build", *options, *settings]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(variables or {})}
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {done.stdout[-1000:]}{done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _num_shards(manifests: Sequence[Path]) -> int:
    """Count the shards of the source: the inputs of its joined part."""
    inputs = [json.loads(path.read_text())["inputs"] for path in manifests]
    return max(sum(1 for label in each if label.startswith(SHARD_LABEL)) for each in inputs)


def _growth(small: BuiltCorpus, middle: BuiltCorpus, large: BuiltCorpus, stage: str) -> float:
    """Return the cost of a byte between the larger corpora as times that between the smaller ones: 1 is linear."""
    marginal = [
        (after.seconds[stage] - before.seconds[stage]) / (after.num_bytes - before.num_bytes)
        for before, after in ((small, middle), (middle, large))
    ]
    return marginal[1] / marginal[0]


def _seconds_of_another(root: Path, recipe: Path) -> float:
    """Build again and return its processor seconds: that of a process which only recognizes what is made."""
    before = _processor_seconds()
    _build(root, recipe)
    return _processor_seconds() - before


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
