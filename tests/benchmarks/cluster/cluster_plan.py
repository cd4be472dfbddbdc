"""Plan of a cluster: what a corpus of any size takes on any number of workers, by measured slopes, and where its first limits are.

`python -m tests.benchmarks cluster-plan [--terabytes 100] [--workers 1000] ...` prints it. Slopes are the rows of `slopes`,
`requests` and `sharded-duplicates` in docs/benchmarks.md, or in the JSON lines of `--slopes FILE`. What is measured is
linear beyond what a build begins with. What is not is taken from the code: copies are sorted, n log n, and the marks of
each shard are read by each range of them, and ranges grow with the documents as shards do.
"""

import argparse
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.command_line import Parser, amount, whole_number
from pipeline.core.errors import MissingError
from pipeline.stages.collect.params import CollectParams
from pipeline.stages.normalize.stage import NUM_IN_RANGE
from pipeline.stages.stages import STAGES
from tests.support.paths import ROOT

DAY = 86_400.0
NAME_BYTES = 1_600
"""Memory of the process that builds for the name of a file where it is collected and audited (decision 0017)."""
LISTED_TIMES = 10
"""Bytes of memory a byte of a manifest that is parsed."""
NUM_REQUIRED = 3
COPIES = "sharded-duplicates"
"""The figure of which a million documents are compared."""
_PAGE = ROOT / "docs/benchmarks.md"
_ROW = re.compile(r"^\| ([\w/-]+) \| (-?[\d.e+]+) \|", re.MULTILINE)
Slopes = Mapping[str, float]


@dataclass(frozen=True)
class Cluster:
    """Numbers that are planned with. Options set each."""

    terabytes: float = 100.0
    workers: int = 1_000
    shard_bytes: int = CollectParams().max_shard_bytes
    requests_a_second: float = 3_500.0
    """Of the bucket: what S3 promises for the puts of one prefix."""
    opens_a_second: float = 10_000.0
    """Files that all nodes together open in the folder of the cache, which they share."""
    megabytes_a_second: float = 100.0
    """Between a worker and the bucket."""
    memory_gibibytes: float = 256.0
    """Of the host of the process that builds."""
    days: float = 7.0
    """In which the corpus is to be built."""

    @property
    def num_bytes(self) -> float:
        """The bytes of source."""
        return self.terabytes * 1e12


@dataclass(frozen=True)
class StagePlan:
    """Needs of one stage: the columns of the table."""

    name: str
    num_bytes: float
    files: float
    objects: float
    requests: float
    worker_seconds: float
    """Of all workers together, with the transfer of what is read and written."""
    seconds: float
    """That it lasts: the slowest of the workers, the requests and the process that builds."""


@dataclass(frozen=True)
class PlanLimit:
    """Bound of one resource: the size of corpus from which it is too small, and what moves it."""

    what: str
    terabytes: float
    grows: str
    moved_by: str


def plan(slopes: Slopes, cluster: Cluster) -> list[StagePlan]:
    """Return what each stage takes."""
    shards = _shards(slopes, cluster)
    plans, before = [], cluster.num_bytes
    for stage in STAGES.names:
        objects = slopes[f"slopes/{stage}/objects"] * shards
        stored = slopes[f"slopes/{stage}/stored"] * cluster.num_bytes
        requests = slopes["requests"] * objects
        transfer = (before + stored) / (cluster.megabytes_a_second * 1e6)
        work = slopes[f"slopes/{stage}/seconds"] * cluster.num_bytes / 1e6 + transfer
        lasts = max(work / cluster.workers, requests / cluster.requests_a_second, slopes["slopes/unchanged"] * objects)
        if stage == "normalize":
            lasts += _copies_seconds(slopes, cluster) + _links(slopes, cluster) / cluster.opens_a_second
        files = slopes[f"slopes/{stage}/files"] * objects
        plans.append(StagePlan(stage, stored, files, objects, requests, work, lasts))
        before = stored
    return plans


def plan_limits(slopes: Slopes, cluster: Cluster) -> list[PlanLimit]:
    """Return the limits of a cluster, the one that is reached first first."""
    seconds, shards_option = cluster.days * DAY, "larger shards, `--set collect.max_shard_bytes`"

    def at(terabytes: float) -> Cluster:
        return Cluster(**{**vars(cluster), "terabytes": terabytes})

    def need(measure: Callable[[Cluster], float], allowed: float) -> float:
        return _largest(lambda terabytes: measure(at(terabytes)) <= allowed)

    def total(field: str) -> Callable[[Cluster], float]:
        return lambda each: sum(getattr(stage, field) for stage in plan(slopes, each))

    memory = cluster.memory_gibibytes * 2**30
    limits = [
        PlanLimit(
            f"seconds of the process that finds contained copies, within {cluster.days:g} days",
            need(lambda each: _copies_seconds(slopes, each), seconds),
            "n log n of the documents, in one process and four parts",
            "corpora that are built apart and mixed by the trainer; more shares than NUM_SHARES",
        ),
        PlanLimit(
            f"seconds of the process that builds, which commits one object after the other, within {cluster.days:g} days",
            need(lambda each: slopes["slopes/unchanged"] * total("objects")(each), seconds),
            "with the shards",
            f"{shards_option}; corpora that are built apart, each by a process of its own",
        ),
        PlanLimit(
            f"memory of the process that builds for the names of files, {cluster.memory_gibibytes:g} GiB",
            need(lambda each: NAME_BYTES * _documents(slopes, each), memory),
            "with the documents",
            "corpora that are built apart; more memory on that one host",
        ),
        PlanLimit(
            f"memory for the manifest of a stage, which lists every shard, {cluster.memory_gibibytes:g} GiB",
            need(lambda each: LISTED_TIMES * slopes["slopes/listed"] * _shards(slopes, each), memory),
            "with the shards",
            shards_option,
        ),
        PlanLimit(
            f"marks of shards that ranges open, {cluster.opens_a_second:,.0f} a second within {cluster.days:g} days",
            need(lambda each: _links(slopes, each), cluster.opens_a_second * seconds),
            "with the square: shards times ranges",
            f"{shards_option}; ranges of more documents than NUM_IN_RANGE",
        ),
        PlanLimit(
            f"requests of all stages, {cluster.requests_a_second:g} a second within {cluster.days:g} days",
            need(lambda each: slopes["requests"] * total("objects")(each), cluster.requests_a_second * seconds),
            "with the shards",
            f"{shards_option}; prefixes, each of which a bucket serves at that rate",
        ),
        PlanLimit(
            f"seconds of {cluster.workers:,} workers, within {cluster.days:g} days",
            need(total("worker_seconds"), seconds * cluster.workers),
            "with the bytes",
            "more workers",
        ),
    ]
    return sorted(limits, key=lambda each: each.terabytes)


def plan_text(slopes: Slopes, cluster: Cluster) -> str:
    """Return the table and the first limits, as Markdown."""
    stages = plan(slopes, cluster)
    lines = [
        f"{cluster.terabytes:g} TB of source, {cluster.workers:,} workers, shards of {cluster.shard_bytes / 2**20:.4g} MiB at most:"
        f" {_count(_shards(slopes, cluster))} shards, {_count(_documents(slopes, cluster))} documents.",
        "",
        "| stage | bytes stored | files | objects | requests | processor hours | lasts |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in stages:
        counts = (each.files, each.objects, each.requests, each.worker_seconds / 3_600)
        lines.append(
            f"| {each.name} | {each.num_bytes / 1e12:.3g} TB | {' | '.join(map(_count, counts))} | {_time(each.seconds)} |"
        )
    totals = [
        sum(getattr(each, name) for each in stages) for name in ("files", "objects", "requests", "worker_seconds")
    ]
    totals[3] /= 3_600
    whole = sum(each.num_bytes for each in stages) / 1e12
    lines.append(
        f"| all | {whole:.3g} TB | {' | '.join(map(_count, totals))} | {_time(sum(each.seconds for each in stages))} |"
    )
    lines += [
        "",
        "All columns but the last grow with the bytes of source; files, objects and requests are fewer in larger shards.",
        f"Normalize opens marks {_count(_links(slopes, cluster))} times, which grows with the square, and compares copies for"
        f" {_time(_copies_seconds(slopes, cluster))}, n log n, of which more workers save nothing.",
        "",
        "The first limits, each with the size of a corpus at which it is reached:",
        "",
    ]
    for number, limit in enumerate(plan_limits(slopes, cluster)[:NUM_REQUIRED], 1):
        lines.append(
            f"{number}. {limit.terabytes:.3g} TB: {limit.what}. It grows {limit.grows}. Moved by: {limit.moved_by}."
        )
    return "\n".join(lines) + "\n"


def read_slopes(path: Path) -> Slopes:
    """Read slopes from a page of benchmarks or from JSON lines. Raises MissingError for one that is not there."""
    text = path.read_text()
    if path.suffix == ".md":
        found = {name: float(value) for name, value in _ROW.findall(text)}
    else:
        rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        found = {row["name"]: row["value"] for row in rows if row["value"] is not None}
    each = ("seconds", "objects", "files", "stored")
    needed = [f"slopes/{stage}/{name}" for stage in STAGES.names for name in each]
    needed += ["slopes/document-bytes", "slopes/shard-fill", "slopes/unchanged", "slopes/listed", "requests"]
    missing = [name for name in (*needed, COPIES) if name not in found]
    if missing:
        remedy = f"Measure them: python -m tests.benchmarks slopes requests {COPIES} --json > slopes.jsonl"
        raise MissingError(
            f"slopes in {path}", f"there is no {missing[0]}", "all rows that the plan is made of", remedy
        )
    return found


def print_plan(arguments: Sequence[str]) -> int:
    """Parse the options, print the plan, and return the exit code."""
    parser = Parser(prog="python -m tests.benchmarks cluster-plan", description=(__doc__ or "").partition("\n")[0])
    default = Cluster()
    for name, value in vars(default).items():
        kind: Callable[[str], float] = whole_number(1, 1 << 50) if isinstance(value, int) else amount
        text = f"{value:g} unless given" if isinstance(value, float) else f"{value:,} unless given"
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=value, help=text)
    parser.add_argument("--slopes", type=Path, default=_PAGE, help="a page of benchmarks, or a file of JSON lines")
    options: argparse.Namespace = parser.parse_or_exit(arguments)
    values = {name: getattr(options, name) for name in vars(default)}
    zero = next((name for name, value in values.items() if value <= 0), None)
    if zero:
        parser.exit(2, f"error: argument --{zero.replace('_', '-')}: found {values[zero]:g}; expected more than 0.\n")
    try:
        print(plan_text(read_slopes(options.slopes), Cluster(**values)), end="")
    except (MissingError, OSError, ValueError) as error:
        parser.exit(1, f"error: {error}\n")
    return 0


def _shards(slopes: Slopes, cluster: Cluster) -> float:
    return cluster.num_bytes / (cluster.shard_bytes * slopes["slopes/shard-fill"])


def _documents(slopes: Slopes, cluster: Cluster) -> float:
    return cluster.num_bytes / slopes["slopes/document-bytes"]


def _links(slopes: Slopes, cluster: Cluster) -> float:
    """Return how often parts that link copies open marks: each opens those of all shards."""
    ranges = 1 << int(_documents(slopes, cluster) // NUM_IN_RANGE).bit_length()
    return ranges * _shards(slopes, cluster)


def _copies_seconds(slopes: Slopes, cluster: Cluster) -> float:
    """Return how long copies are compared, from the seconds of a million documents, as sorting grows."""
    documents, measured = max(_documents(slopes, cluster), 2.0), 1e6
    return slopes[COPIES] * documents * math.log(documents) / (measured * math.log(measured))


def _largest(holds: Callable[[float], bool]) -> float:
    """Return the largest number of terabytes for which something holds that holds up to some size, by halving its logarithm."""
    low, high = -9.0, 9.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(10**middle) else (low, middle)
    return float(10**low)


def _count(value: float) -> str:
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def _time(seconds: float) -> str:
    for size, unit in ((DAY, "days"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
