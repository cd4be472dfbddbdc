"""The snapshot: what a build ends with and a training reads. Its id is the id of one object that names everything inside.

A snapshot object holds `snapshot.json` (below), the vocabulary's files, and the ids of the row objects in its manifest.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.contracts.part import PartJob, PartOutput, Tables
from pipeline.contracts.report import StageReport
from pipeline.core.errors import MissingError, SnapshotError
from pipeline.core.params import canonical_json
from pipeline.core.records import Split
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store

KIND = "snapshot/snapshot"
SNAPSHOT = "snapshot.json"
FORMAT_VERSION = 2
"""Format of snapshot.json, apart from that of manifests and from the versions of the stages."""


@dataclass(frozen=True)
class SnapshotSource:
    """One source in a snapshot. `licenses` counts its documents by normalized SPDX expression."""

    name: str
    rows: str
    """Id of the object that holds its rows."""
    weight: float
    num_documents: int
    num_tokens: int
    num_text_bytes: int
    num_rows_train: int
    num_rows_held_out: int
    licenses: Mapping[str, int]


@dataclass(frozen=True)
class Snapshot:
    """A snapshot opened for reading."""

    store: Store
    stored: StoredObject
    sources: tuple[SnapshotSource, ...]
    vocabulary: Mapping[str, Any]
    """`name`, `sha256`, `size` and `specials` (spelling -> id)."""
    row_length: int

    @property
    def snapshot_id(self) -> str:
        return self.stored.object_id

    @property
    def tokenizer_file(self) -> Path:
        """A plain tokenizer.json, as `tokenizers.Tokenizer.from_file` reads it."""
        return self.stored.file("tokenizer.json")

    def row_files(self, source: str, split: Split) -> list[Path]:
        """The verified files of a source's hot rows (TrainingRow) in one split. Raises SnapshotError for an unknown source."""
        for entry in self.sources:
            if entry.name == source:
                return self.store.read(entry.rows).paths(f"rows_{split}.arrow")
        names = ", ".join(entry.name for entry in self.sources)
        raise SnapshotError(f"snapshot {self.snapshot_id[:12]}", f"no source {source}", f"one of {names}")


def resolve(store: Store, corpus: str, name: str) -> str:
    """The id that `live`, `candidate` or an id itself stands for. Raises MissingError saying how to have one."""
    if name not in ("live", "candidate"):
        return store.read(name).object_id
    found = store.ref(corpus, name)
    if found is None:
        remedy = (
            "Run `python -m pipeline promote` first." if name == "live" else "Run `python -m pipeline build` first."
        )
        raise MissingError(f"snapshot {name} of corpus {corpus}", f"there is none in {store.root}", "", remedy)
    return found


def open_snapshot(store: Store, snapshot_id: str) -> Snapshot:
    """Open a snapshot. Raises SnapshotError for an object that is none, or of a format from the future."""
    stored = store.read(snapshot_id)
    if stored.manifest.kind != KIND:
        raise SnapshotError(
            f"object {snapshot_id[:12]}", f"it is a {stored.manifest.kind}", "a snapshot", "Look at `refs` with `show`."
        )
    content = stored.json(SNAPSHOT)
    if content["format_version"] != FORMAT_VERSION:
        raise SnapshotError(f"snapshot {snapshot_id[:12]}", f"format {content['format_version']}", f"{FORMAT_VERSION}")
    sources = tuple(SnapshotSource(**source) for source in content["sources"])
    return Snapshot(store, stored, sources, content["vocabulary"], content["row_length"])


def compose(job: PartJob) -> PartOutput:
    """Part function: the snapshot of the rows that `job.inputs` names.

    Inputs: `rows/<source>` and `rules/<source>` for each source, `duplicates`, and `tokenize`, the stage that holds the vocabulary.
    Identity: `weights` by source, `vocabulary`, `row_length`, `pins`, `stages`; copied into snapshot.json.
    """
    kept = set(job.inputs["duplicates"].table("kept.parquet", ["document_id"])["document_id"].to_pylist())
    names = sorted(label.removeprefix("rows/") for label in job.inputs if label.startswith("rows/"))
    sources = [_describe_source(job, name, kept) for name in names]
    content = {
        "format_version": FORMAT_VERSION,
        "sources": sources,
        "vocabulary": job.identity["vocabulary"],
        "row_length": job.identity["row_length"],
        "pins": job.identity["pins"],
        "held_out": job.identity["held_out"],
    }
    files = {name: job.inputs["tokenize"].file(name).read_bytes() for name in ("tokenizer.json", "vocabulary.toml")}
    num_documents = sum(source["num_documents"] for source in sources)
    report = StageReport(num_documents, num_documents, measures={"num_sources": len(sources)})
    return PartOutput({}, report, files | {SNAPSHOT: canonical_json(content)})


def _describe_source(job: PartJob, name: str, kept: set[str]) -> dict[str, Any]:
    measures = job.inputs[f"rows/{name}"].json("report.json")["measures"]
    return {
        "name": name,
        "rows": job.inputs[f"rows/{name}"].object_id,
        "weight": job.identity["weights"][name],
        "num_documents": measures["num_documents"],
        "num_tokens": measures["num_tokens"],
        "num_text_bytes": measures["num_text_bytes"],
        "num_rows_train": measures["num_rows_train"],
        "num_rows_held_out": measures["num_rows_held_out"],
        "licenses": _count_licenses(job.inputs[f"rules/{name}"], kept),
    }


def _count_licenses(rules: Tables, kept: set[str]) -> dict[str, int]:
    import pyarrow as pa
    import pyarrow.compute as pc

    table = rules.table("documents.parquet", ["document_id", "license"])
    mask = pc.is_in(table["document_id"], value_set=pa.array(sorted(kept), pa.large_string()))
    return dict(sorted(Counter(table.filter(mask)["license"].to_pylist()).items()))
