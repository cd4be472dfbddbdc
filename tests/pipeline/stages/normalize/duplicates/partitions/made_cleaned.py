"""Made cleaned sources: the tables that duplicates are found by, made of texts without the rules that clean them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.build.engines.part_task import write_output
from pipeline.contracts.part import COPIES_LABEL, LINKS_LABEL, SCRATCH, PartJob, PartOutput
from pipeline.core.digests import document_id, text_sha256
from pipeline.core.params import Params
from pipeline.core.schema import table_of_records
from pipeline.core.table_names import DOCUMENTS
from pipeline.formats.tables import read_table
from pipeline.lexing.language_lexers import lexer_of
from pipeline.stages.normalize.duplicates.contained_pairs import sampled_shingles
from pipeline.stages.normalize.duplicates.copyleft import COPYLEFT, CopyleftRecord
from pipeline.stages.normalize.duplicates.duplicates import SIGNATURES, SignatureRecord
from pipeline.stages.normalize.duplicates.partitions.compare_groups import compare_groups
from pipeline.stages.normalize.duplicates.partitions.grouped_copies import find_copies
from pipeline.stages.normalize.duplicates.partitions.links import link_documents
from pipeline.stages.normalize.duplicates.partitions.marks import mark_documents
from pipeline.stages.normalize.duplicates.shingles import (
    body_shingle_hashes,
    hashes_for_minhash,
    shingle_hashes,
    signature,
)
from pipeline.stages.normalize.stage import NUM_SHARES

MIN_NUM_TOKENS = 30


@dataclass(frozen=True)
class MadeTables:
    """An object as its readers see it, with tables that are in memory."""

    output: PartOutput
    shards: Sequence["MadeTables"] = ()
    identity: Mapping[str, Any] = field(default_factory=dict)

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        tables = [shard.output.tables[name] for shard in self.shards or (self,)]
        table = pa.concat_tables(tables)
        return table if columns is None else table.select(list(columns))

    def json(self, name: str) -> Any:
        return asdict(self.output.report)


class StreamedTables:
    """An object as its readers see it, with tables that are written one after the other."""

    def __init__(self, output: PartOutput, folder: Path) -> None:
        write_output(folder, output)
        self._folder = folder

    def paths(self, name: str) -> list[Path]:
        return sorted(self._folder.glob(f"{name.partition('.')[0]}-*"))

    def read(self, path: Path) -> pa.Table:
        return read_table([path])


@dataclass(frozen=True)
class MadeFile:
    """A text of a source. One under copyleft is no document."""

    path: str
    text: str
    split: str = "train"
    is_copyleft: bool = False
    is_own: bool = True


def cleaned(source: str, files: Sequence[MadeFile], num_shards: int = 1) -> MadeTables:
    """Return a source of some files, in shards of about as many."""
    ordered = sorted(files, key=lambda file: file.path)
    size = -(-len(ordered) // num_shards)
    shards = tuple(_shard(source, ordered[start : start + size]) for start in range(0, len(ordered), size))
    return MadeTables(PartOutput({}), shards)


def _shard(source: str, files: Sequence[MadeFile]) -> MadeTables:
    documents = [file for file in files if not file.is_copyleft]
    texts = {
        "document_id": pa.array([_id(source, file) for file in documents], pa.large_string()),
        "text": pa.array([file.text for file in documents], pa.large_string()),
    }
    tables = {
        DOCUMENTS: pa.table(texts),
        SIGNATURES: table_of_records(SignatureRecord, [_signed(source, file) for file in documents]),
        COPYLEFT: table_of_records(CopyleftRecord, [_copyleft(source, file) for file in files if file.is_copyleft]),
    }
    part = MadeTables(PartOutput(tables))
    return MadeTables(part.output, (part,))


def _id(source: str, file: MadeFile) -> str:
    return document_id(source, file.path, text_sha256(file.text))


def _signed(source: str, file: MadeFile) -> SignatureRecord:
    number = len(lexer_of(file.path).token_hashes(file.text))
    shingles, body = shingle_hashes(file.path, file.text), body_shingle_hashes(file.path, file.text)
    is_signed = number >= MIN_NUM_TOKENS
    values = tuple(signature(hashes_for_minhash(shingles), 1).tolist()) if is_signed else ()
    sample = tuple(sampled_shingles(body).tolist()) if is_signed else ()
    named = (_id(source, file), source, file.path, file.split, len(file.text.encode()), text_sha256(file.text))
    return SignatureRecord(*named, file.is_own, number, len(shingles), len(body), values, sample)


def _copyleft(source: str, file: MadeFile) -> CopyleftRecord:
    signed = _signed(source, file)
    lists = (signed.signature, tuple(shingle_hashes(file.path, file.text).tolist())) if file.is_own else ((), ())
    return CopyleftRecord(signed.document_id, source, file.path, signed.text_sha256, file.is_own, *lists)


def compare_in_groups(job: PartJob, scratch: Path, num_ranges: int = 4) -> PartOutput:
    """Compare the sources of a job in groups, by marks, ranges and links."""
    shards = [shard for name in sorted(job.inputs) for shard in job.inputs[name].shards]
    marks: Any = {
        f"{number:06d}": MadeTables(mark_documents(PartJob("", Params(), {"rules": shard}, {}, {})))
        for number, shard in enumerate(shards)
    }
    links: Any = {
        f"{LINKS_LABEL}{number}": MadeTables(
            link_documents(PartJob("", Params(), marks, {"range": number, "num_ranges": num_ranges}, {}))
        )
        for number in range(num_ranges)
    }
    inputs, places = {**job.inputs, **links}, {SCRATCH: scratch}
    copies: dict[str, Any] = {}
    for share in range(0 if job.identity["upstreams"] else NUM_SHARES):
        identity = {**job.identity, "share": share, "num_shares": NUM_SHARES}
        output = find_copies(PartJob("", job.params, inputs, identity, places))
        copies[f"{COPIES_LABEL}{share}"] = StreamedTables(output, scratch / f"share{share}")
    return compare_groups(PartJob(job.name, job.params, {**inputs, **copies}, job.identity, places))
