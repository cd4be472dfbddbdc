"""Shards of a source: stretches of its files in the order of paths, cut where the hash of a path says so.

A large source is read once, as a stream that holds the places of its bytes alone, and stored shard by shard. Each shard then is
a part whose identity is the digest of its bytes: one that another revision of the source has too is not made again.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pipeline.contracts.part import EVIDENCE_LABEL, SCRATCH, Part, PartJob, PartOutput, Tables
from pipeline.contracts.stage_report import StageReport
from pipeline.core.digests import known_sha256
from pipeline.core.params import Params
from pipeline.core.records import DroppedRecord, SourceFile, TreeFile
from pipeline.core.schema import table_of_records
from pipeline.core.table_names import DROPPED, EVIDENCE, FILES
from pipeline.formats.tables import read_table
from pipeline.lexing.languages import is_source
from pipeline.pins.selection import Selector, Selectors
from pipeline.stages.collect.contents import ReadFile, SkippedFile, Spill
from pipeline.stages.collect.params import CollectParams
from pipeline.stages.collect.refusals import naming_source, refuse_empty
from pipeline.stages.collect.source_rows import (
    dropped_record,
    read_contents,
    source_file,
    without_withdrawn,
    without_words,
)

if TYPE_CHECKING:
    import pyarrow as pa

READ = "read"
"""Name of the part function that reads a large source."""
NO_REVISION = ""
"""The revision in the rows of a shard: the part that lists it has that of the source."""
_KEY = b"shard"
_PATHS_PER_EDGE = 64
"""One path in so many may be the first of a shard, so that a file that comes or goes moves edges of its own shard alone."""
_SIDECAR = ".license"
_NUM_DIGITS = 12


def read_source(job: PartJob) -> PartOutput:
    """Read a large source, and store its files, drops and evidence shard by shard, as a part. Raises SourceError."""
    limits = cast(CollectParams, job.params)
    with naming_source(job.name):
        contents = read_contents(job, Spill(job.places[SCRATCH]))
    refuse_empty(job.name, contents)
    selectors = Selectors(Selector(text) for text in job.identity.get("withdrawn", ()))
    files, withdrawn = without_withdrawn(job.name, contents.files, selectors)
    others = without_words(job.name, contents.skipped, selectors)
    skipped = sorted((*others, *withdrawn), key=lambda each: each.path)
    starts = shard_starts(files, limits.min_shard_bytes, limits.max_shard_bytes)
    first_paths = [files[start].path if files else "" for start in starts]
    by_shard: list[list[SkippedFile]] = [[] for _ in starts]
    for each in skipped:
        by_shard[max(0, bisect_right(first_paths, each.path) - 1)].append(each)
    stretches = [files[start:end] for start, end in zip(starts, [*starts[1:], len(files)], strict=True)]
    streams: dict[str, Iterator[pa.Table]] = {
        FILES: (_files_table(job, stretch) for stretch in stretches),
        DROPPED: (
            table_of_records(DroppedRecord, [dropped_record(job.name, each) for each in some]) for some in by_shard
        ),
    }
    evidence = [TreeFile(file.path, file.content) for stretch in stretches for file in _for_others(stretch)]
    streams[EVIDENCE] = iter([table_of_records(TreeFile, evidence)])
    return PartOutput({}, StageReport(len(files), len(files)), streams=streams)


def _files_table(job: PartJob, files: Sequence[ReadFile]) -> "pa.Table":
    return table_of_records(SourceFile, [source_file(job.name, NO_REVISION, file) for file in files])


def shard_starts(files: Sequence[ReadFile], min_bytes: int, max_bytes: int) -> list[int]:
    """Return the index of the first file of each shard, of files in the order of their paths. The last may be below the least size.

    A file and its sidecar stay together.
    """
    starts, size = [0], 0
    for index, file in enumerate(files):
        is_sidecar = index > 0 and file.path == f"{files[index - 1].path}{_SIDECAR}"
        is_edge = size >= min_bytes and _is_edge(file.path)
        if size and not is_sidecar and (is_edge or size + file.num_bytes > max_bytes):
            starts.append(index)
            size = 0
        size += file.num_bytes
    return starts


def _is_edge(path: str) -> bool:
    content = path.encode("utf-8", "surrogateescape")
    digest = hashlib.blake2b(content, digest_size=8, key=_KEY).digest()
    return int.from_bytes(digest) % _PATHS_PER_EDGE == 0


def _for_others(stretch: Sequence[ReadFile]) -> Iterator[ReadFile]:
    """Yield the evidence of a shard that states licenses of files beside or below it; a sidecar is of one file of its shard."""
    paths = {file.path for file in stretch}
    yield from (
        file
        for file in stretch
        if not is_source(file.path) and not (file.path.endswith(_SIDECAR) and file.path.removesuffix(_SIDECAR) in paths)
    )


def shards_of(source: str, read: Tables) -> list[Part]:
    """Return the parts of the shards of a source that was read, and that of its evidence last."""
    parts = []
    for files, dropped in zip(read.paths(FILES), read.paths(DROPPED), strict=True):
        first = "".join(read_table([files], ["path"])["path"].slice(0, 1).to_pylist())
        name = f"{source}.{hashlib.sha256(first.encode('utf-8', 'surrogateescape')).hexdigest()[:_NUM_DIGITS]}"
        parts.append(_part_of_bytes(name, "shard", {"files": files, "dropped": dropped}))
    (evidence,) = read.paths(EVIDENCE)
    return [*parts, _part_of_bytes(f"{source}.{EVIDENCE_LABEL}", "evidence", {"evidence": evidence})]


def _part_of_bytes(name: str, function: str, places: Mapping[str, Path]) -> Part:
    """Return a part whose output is that of files, whichever source they were read from."""
    return Part(name, function, Params(), {}, {label: known_sha256(path) for label, path in places.items()}, places)


def collect_shard(job: PartJob) -> PartOutput:
    """Return the files and drops of one shard, as a part."""
    return PartOutput({FILES: read_table([job.places["files"]]), DROPPED: read_table([job.places["dropped"]])})


def keep_evidence(job: PartJob) -> PartOutput:
    """Return the evidence of a source in shards, as a part."""
    table = read_table([job.places["evidence"]])
    return PartOutput({EVIDENCE: table}, StageReport(table.num_rows, table.num_rows))
