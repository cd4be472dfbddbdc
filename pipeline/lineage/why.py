"""FileTrace: what each stage did with one file, and on what evidence. Read from the stored tables with DuckDB."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.build.stage_objects import parts_of, stage_params
from pipeline.build.withdrawal import withdrawal_lines
from pipeline.contracts.stage import PartKind, StageTable
from pipeline.contracts.withheld_paths import collected_path, is_withheld, withheld_path
from pipeline.core.command_line import shell_command
from pipeline.core.errors import MissingError, StageError
from pipeline.core.records import DroppedRecord, DuplicateRecord, PackedRow
from pipeline.core.table_names import FILES
from pipeline.formats.tables import count_rows, find_rows, read_table
from pipeline.lineage.deciding_limits import deciding_limits, filters_passed
from pipeline.lineage.queries import QueryRow, connect, query, shown_names, table_files, with_revision
from pipeline.lineage.stored_build import StoredBuild, stored_build
from pipeline.pins.decisions import DECISIONS
from pipeline.pins.selection import Selector
from pipeline.stages.stages import STAGES, collecting_steps, listing_stage
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store

_DROPS = {
    DroppedRecord: "reason, detail, license, num_bytes",
    DuplicateRecord: "reason, keeper_source, keeper_path, jaccard, num_keepers, cluster_id",
}
_ROWS = "select pack_id, split from read_parquet($files) where list_contains(source_doc_ids, $document_id) order by all"


@dataclass(frozen=True)
class TraceStep:
    """Result of one stage for the file: `kept`, `dropped` or `lost`, the reason, and the evidence."""

    stage: str
    verdict: str
    reason: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FileTrace:
    """The steps of one file through the stages that a build has reached. `kept` says whether it is in the snapshot."""

    source: str
    path: str
    steps: tuple[TraceStep, ...]
    build: Mapping[str, Any] = field(default_factory=dict)
    """The facts of the build."""
    withdrawn: tuple[str, ...] = ()
    """The withdrawals of the file, which every later build follows: selector, day and reason."""

    @property
    def lost(self) -> bool:
        """True where a stage neither kept nor dropped it, which is a defect."""
        return any(step.verdict == "lost" for step in self.steps)

    @property
    def kept(self) -> bool:
        """True where every step kept it, the last one included."""
        *_, last = (step for stage in STAGES for step in stage.steps)
        return bool(self.steps) and (self.steps[-1].stage, self.steps[-1].verdict) == (last, "kept")


def why(store: Store, corpus: str, source: str, path: str, of: str | None = None) -> FileTrace:
    """Trace a file through a build, as `stored_build` finds it. Raises MissingError for an unknown corpus, source or path.

    A source that was withdrawn as a whole was in an earlier build: of its files the withdrawal alone is told.
    """
    build = stored_build(store, corpus, of)
    listing, withdrawn = build.stages.get(listing_stage().name), withdrawal_lines(store, source, path)
    if withdrawn and listing is not None and source not in parts_of(listing):
        step = TraceStep(collecting_steps()[-1], "dropped", "withdrawn", {"detail": "with all of its source"})
        return FileTrace(source, path, (step,), build.facts(), withdrawn)
    collected = collected_path(path, _collected_paths(build, source)) if is_withheld(path) and listing else path
    steps = tuple(_Tracer(build, source, collected).steps())
    withdrawn = withdrawal_lines(store, source, collected, _sha256(build, source, collected, steps[-1]))
    return FileTrace(source, path, steps, build.facts(), withdrawn)


def _collected_paths(build: StoredBuild, source: str) -> list[str]:
    """Return the paths of all files that were collected of a source."""
    files = build.part(listing_stage().name, source).paths(FILES)
    return [str(path) for file in files for path in read_table([file], ["path"])["path"].to_pylist()]


def _sha256(build: StoredBuild, source: str, path: str, last: TraceStep) -> str | None:
    """Return the digest of a file as received: a withdrawn one is listed by what withdraws it alone."""
    if last.reason == "withdrawn":
        return Selector(str(last.evidence["detail"]).partition("by ")[2]).sha256
    found = find_rows(build.part(listing_stage().name, source).paths(FILES), "path", path, ("blob_sha256",))
    return found[0]["blob_sha256"] if found else None


class _Tracer:
    """Queries about one file, and the stages' parts that they read."""

    def __init__(self, build: StoredBuild, source: str, path: str) -> None:
        self.build, self.source, self.path = build, source, path
        self.database = connect()

    def steps(self) -> Iterator[TraceStep]:
        """Yield the steps in order, up to the first that did not keep the file. License evidence takes the first step alone.

        A build ends with the stage that was blocked, or that `--until` names. A corpus without one raises MissingError.
        """
        is_short = bool(self.build.stages) and (self.build.of is not None or self.build.sentence() is None)
        for stage in STAGES:
            if stage.name not in self.build.stages and is_short:
                return
            for name, kind in stage.steps.items():
                part = self.build.part_of(stage.name, kind, self.source)
                step = self._with_limits(stage.name, self._step(name, kind, part), part)
                yield step
                if step.verdict != "kept" or step.evidence.get("is_evidence"):
                    return

    def _with_limits(self, stage: str, step: TraceStep, part: StoredObject) -> TraceStep:
        """Return a step with the limits that decided it: those of the reason of a drop, of a document those of all filters."""
        scores = step.evidence.pop("scores", None)
        if step.verdict == "kept" and scores is None:
            return step
        try:
            params = stage_params(self.build.stage(stage))
        except StageError as error:  # of another version, whose stores are answered about too
            return replace(step, evidence=step.evidence | {"limit": f"not known: {error}"})
        if step.verdict == "kept":
            return replace(step, evidence=step.evidence | {"filters": filters_passed(params, str(scores))})
        limits = deciding_limits(stage, step.reason, params, part.identity, {"source": self.source, **step.evidence})
        return replace(step, evidence=step.evidence | ({"limit": limits} if limits else {}))

    def _step(self, name: str, kind: PartKind, part: StoredObject) -> TraceStep:
        tables = [table for table in kind.tables if table.shown]
        rows = (self._row(part, table, table.shown) for table in tables)
        kept: QueryRow = {}
        for row in filter(None, rows):
            kept = row | kept
        if kept:
            kept |= self._decisions(part)
            reason = "license evidence" if kept.get("is_evidence") else kind.reason_kept
            return TraceStep(name, "kept", reason, kept | self._packed_rows(part, kind, kept))
        for table in kind.tables:
            dropped = self._row(part, table, _DROPS[table.record]) if table.lists_drops else None
            if dropped is not None:
                dropped |= self._decisions(part)
                return TraceStep(name, "dropped", str(dropped.pop("reason")), dropped)
        if not tables:
            return TraceStep(name, "kept", kind.reason_kept)
        if name == collecting_steps()[-1]:
            raise self._unknown(part, tables[0])
        return TraceStep(name, "lost", "no table contains it: report this as a defect")

    def _row(self, part: StoredObject, table: StageTable, columns: str) -> QueryRow | None:
        # A table of all sources has a column for the source; DuckDB reads the columns of the query alone, and not the texts.
        sql = f"select {columns} from read_parquet($files) where source = $source and path in ($path, $withheld)"
        names = {"source": self.source, "path": self.path, "withheld": withheld_path(self.path)}
        found = next(iter(query(self.database, sql, files=table_files([part], table.name), **names)), None)
        return None if found is None else with_revision(part, found)

    def _decisions(self, part: StoredObject) -> QueryRow:
        """Return the decisions about the file, if its part has any."""
        if not part.has(DECISIONS):
            return {}
        from pipeline.stages.normalize.decided_files import decisions_about  # other files do not wait for it

        return {"decisions": decisions_about(part, self.path)}

    def _packed_rows(self, part: StoredObject, kind: PartKind, document: Mapping[str, Any]) -> QueryRow:
        """Return the packed rows that the document is in, if the parts of this kind hold rows."""
        names = [table.name for table in kind.tables if table.record is PackedRow]
        if not names:
            return {}
        rows: list[str] = []
        for name in names:
            num_before = 0  # rows count on from shard to shard
            for shard in part.shards:
                files = table_files([shard], name)
                found = query(self.database, _ROWS, files=files, document_id=document["document_id"])
                rows += [f"{row['split']}/{row['pack_id'] + num_before}" for row in found]
                num_before += sum(map(count_rows, shard.paths(name)))
        return {"rows": rows}

    def _unknown(self, part: StoredObject, table: StageTable) -> MissingError:
        sql = "select path from read_parquet($files) order by path"
        paths = [row["path"] for row in query(self.database, sql, files=table_files([part], table.name))]
        near = difflib.get_close_matches(self.path, paths, n=3, cutoff=0.5)
        names = ", ".join(shown_names(near or paths[:3]))
        report = shell_command("pipeline report", corpus=self.build.corpus, of=self.build.of)
        return MissingError(
            f"file {self.path} of source {self.source}",
            "the source contains no such file",
            f"one of its {len(paths)} files",
            f"Did you mean {names}?" if near else f"Its files begin with {names}; `{report}` lists them all.",
        )
