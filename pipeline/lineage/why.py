"""Where did this file go, and why? Read from the stored tables with DuckDB, stage by stage."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb

from pipeline.build.stages import parts_of
from pipeline.core.errors import MissingError
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store

_COLLECTED = "select revision, blob_sha256, git_blob_id, num_bytes, is_evidence from {table} where path = $path"
_DROPPED = "select reason, detail, license, num_bytes from {table} where path = $path"
_DOCUMENT = """select document_id, split, encoding, edits, license, license_class, license_branch, license_evidence, license_detail,
    num_redactions, num_bytes, text_sha256 from {table} where path = $path"""
_DUPLICATE = """select reason, keeper_source, keeper_path, jaccard, cluster_id from {table}
    where source = $source and path = $path"""
_ENRICHED = """select language, provenance, provenance_detail, len(chunk_kinds) as num_chunks, error_fraction, includes
    from {table} where path = $path"""
_TOKENS = "select document_id, len(input_ids) as num_tokens, num_bytes from {table} where path = $path"
_ROWS = "select pack_id, split from {table} where list_contains(source_doc_ids, $document_id) order by pack_id"


@dataclass(frozen=True)
class Step:
    """What one stage did with the file: `kept` or `dropped`, the rule, and the evidence."""

    stage: str
    verdict: str
    reason: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trail:
    """The way of one file through the five stages. `kept` says whether it is in the candidate snapshot."""

    source: str
    path: str
    steps: tuple[Step, ...]

    @property
    def kept(self) -> bool:
        return bool(self.steps) and self.steps[-1].stage == "tokenize" and self.steps[-1].verdict == "kept"


def why(store: Store, corpus: str, source: str, path: str) -> Trail:
    """The trail of a file through the corpus as it was last built. Raises MissingError for an unknown corpus, source or path."""
    return Trail(source, path, tuple(_Reader(store, corpus, source, path).steps()))


class _Reader:
    def __init__(self, store: Store, corpus: str, source: str, path: str) -> None:
        self.store, self.corpus, self.source, self.path = store, corpus, source, path
        self.database = duckdb.connect(":memory:", config={"threads": 1})

    def steps(self) -> Iterator[Step]:
        collected = self._collected()
        yield collected
        if collected.verdict == "dropped" or collected.evidence.get("is_evidence"):
            return
        for step in (self._cleaned, self._compared, self._enriched, self._tokenized):
            found = step()
            yield found
            if found.verdict != "kept":
                return

    def _collected(self) -> Step:
        part = self._part("collect", self.source)
        kept = self._one(part, "files.parquet", _COLLECTED)
        if kept is not None:
            return Step("collect", "kept", "license evidence" if kept["is_evidence"] else "", kept)
        return self._dropped("collect", part) or self._unknown(part)

    def _cleaned(self) -> Step:
        part = self._part("normalize", self.source)
        document = self._one(part, "documents.parquet", _DOCUMENT)
        if document is not None:
            return Step("normalize", "kept", "", document)
        return self._dropped("normalize", part) or Step(
            "normalize", "lost", "no table names it: report this as a defect"
        )

    def _compared(self) -> Step:
        loser = self._one(self._part("normalize", "duplicates"), "duplicates.parquet", _DUPLICATE)
        if loser is None:
            return Step("duplicates", "kept", "no better copy")
        return Step("duplicates", "dropped", str(loser.pop("reason")), loser)

    def _enriched(self) -> Step:
        found = self._one(self._part("enrich", self.source), "enriched.parquet", _ENRICHED)
        return Step("enrich", "kept" if found else "lost", "", found or {})

    def _tokenized(self) -> Step:
        part = self._part("tokenize", self.source)
        found = self._one(part, "tokens.parquet", _TOKENS)
        if found is None:
            return Step("tokenize", "lost")
        found["rows"] = [
            f"{row['split']}/{row['pack_id']}"
            for split in ("train", "held_out")
            for row in self._all(part, f"packed_{split}.parquet", _ROWS, document_id=found["document_id"])
        ]
        return Step("tokenize", "kept", "", found)

    def _dropped(self, stage: str, part: StoredObject) -> Step | None:
        found = self._one(part, "dropped.parquet", _DROPPED)
        return None if found is None else Step(stage, "dropped", str(found.pop("reason")), found)

    def _unknown(self, part: StoredObject) -> Step:
        paths = [row["path"] for row in self._all(part, "files.parquet", "select path from {table} order by path")]
        near = difflib.get_close_matches(self.path, paths, n=3, cutoff=0.5) or paths[:3]
        raise MissingError(
            f"file {self.path} of source {self.source}",
            "the source holds no such file",
            "",
            f"Did you mean {', '.join(near)}?",
        )

    def _part(self, stage: str, name: str) -> StoredObject:
        stage_id = self.store.ref(self.corpus, stage)
        if stage_id is None:
            raise MissingError(
                f"corpus {self.corpus}", f"stage {stage} has no output", "", "Run `python -m pipeline build` first."
            )
        parts = parts_of(self.store.read(stage_id))
        if name not in parts:
            raise MissingError(
                f"source {name}", f"corpus {self.corpus} has no such source", f"one of {', '.join(parts)}"
            )
        return self.store.read(parts[name])

    def _one(self, part: StoredObject, table: str, query: str) -> dict[str, Any] | None:
        rows = self._all(part, table, query)
        return rows[0] if rows else None

    def _all(self, part: StoredObject, table: str, query: str, **parameters: str) -> list[dict[str, Any]]:
        # DuckDB reads the columns that are asked for, and not the texts beside them.
        known = {
            "path": self.path,
            "source": self.source,
            "files": [str(path) for path in part.paths(table)],
        } | parameters
        used = {name: value for name, value in known.items() if f"${name}" in query or name == "files"}
        cursor = self.database.execute(query.format(table="read_parquet($files)"), used)
        names = [column[0] for column in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
