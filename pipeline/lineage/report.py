"""What became of every file of a corpus: by stage, rule, source and license, with samples, and the clusters of duplicates.

Asked of the stored tables with DuckDB. The same store gives the same report, byte for byte: samples are chosen by the digest of
their path, and nothing reads a clock. What a sample shows of a file went through the scrubber first.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import duckdb

from pipeline.build.stages import STAGE_NAMES, parts_of, report_of, stage_params
from pipeline.core.errors import MissingError
from pipeline.normalize.decode import decode
from pipeline.normalize.params import NormalizeParams
from pipeline.normalize.refusal import Refusal
from pipeline.normalize.scrub.scrub import Scrubber
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store

DUPLICATES = "duplicates"
NUM_LINES, MAX_LINE, MAX_SAMPLE_BYTES = 12, 140, 20_000
_DROPPED = "source, path, num_bytes, reason, detail, license"
_VIEWS = f"""
create view drops as
    select 'collect' as stage, {_DROPPED} from collect_dropped
    union all select 'normalize', {_DROPPED} from normalize_dropped
    union all select 'duplicates', lost.source, lost.path, lost.num_bytes, lost.reason,
        format('keeper {{}}/{{}}, Jaccard {{:.3f}}', keeper_source, keeper_path, jaccard), documents.license
        from duplicates as lost join documents using (document_id);
create view licensed as
    select source, path, num_bytes, license, license_class, license_evidence, 'kept' as fate
        from documents semi join kept using (document_id)
    union all select lost.source, lost.path, lost.num_bytes, license, license_class, license_evidence, reason
        from duplicates as lost join documents using (document_id)
    union all select source, path, num_bytes, coalesce(license, 'none found'), '', '', reason
        from normalize_dropped where reason like 'license%';
"""
_RULES = """select stage, reason, count(*) as num_files, sum(num_bytes)::bigint as num_bytes,
    count(distinct source) as num_sources from drops group by all order by num_files desc, stage, reason"""
_CELLS = """select source, stage, reason, count(*) as num_files, sum(num_bytes)::bigint as num_bytes
    from drops group by all order by source, num_files desc, stage, reason"""
_SAMPLES = """select stage, reason, source, path, num_bytes, detail, license from drops
    qualify row_number() over (partition by stage, reason order by md5(source || '/' || path)) <= $num_samples
    order by stage, reason, source, path"""
_LICENSES = """select license, max(license_class) as license_class, fate, count(*) as num_files,
    sum(num_bytes)::bigint as num_bytes, count(distinct source) as num_sources
    from licensed group by license, fate order by sum(count(*)) over (partition by license) desc, license, num_files desc, fate"""
_REFUSALS = """select source, reason, license, replace(detail, path, 'this file') as evidence, count(*) as num_files,
    sum(num_bytes)::bigint as num_bytes, list(path order by md5(path))[:$num_samples] as paths
    from normalize_dropped where reason like 'license%'
    group by all order by source, num_files desc, reason, license, evidence"""
_CLUSTERS = """select cluster_id, any_value(keeper_source) as keeper_source, any_value(keeper_path) as keeper_path,
    count(*) as num_losers, sum(num_bytes)::bigint as num_bytes, min(jaccard) as min_jaccard,
    list({'source': source, 'path': path, 'num_bytes': num_bytes, 'jaccard': jaccard, 'reason': reason}
        order by jaccard desc, source, path) as losers
    from duplicates group by cluster_id order by num_losers desc, keeper_source, keeper_path"""
_CONTENT = "select path, content from read_parquet($files) where list_contains($paths, path)"

Row = dict[str, Any]


@dataclass(frozen=True)
class Report:
    """What became of the files of a corpus. Bytes are those of the files, in tables of plain values."""

    corpus: str
    snapshot_id: str | None
    limits: Row
    """The duplicates' thresholds, for the plot of similarities."""
    stages: list[Row]
    """Rows and bytes in and out, drops by reason; duplicates stand as a step of their own."""
    sources: list[Row]
    """By source: what was collected, what is kept, its tokens and its drops by stage and reason."""
    rules: list[Row]
    """By stage and reason: files, bytes, sources, and samples with the measured value and the first lines."""
    licenses: list[Row]
    """By license expression and fate."""
    refusals: list[Row]
    """By source: the license that was refused or quarantined, on what evidence, and some of the paths."""
    clusters: list[Row]
    """A keeper, and those that lost to it with their exact similarity."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def report_corpus(store: Store, corpus: str, num_samples: int = 5) -> Report:
    """The report of a corpus as it was last built, at least to normalize. Raises MissingError for one that was not."""
    return _Reporter(store, corpus, num_samples).report()


class _Reporter:
    def __init__(self, store: Store, corpus: str, num_samples: int) -> None:
        self.store, self.corpus, self.num_samples = store, corpus, num_samples
        self.stages = {name: store.read(ref) for name in STAGE_NAMES if (ref := store.ref(corpus, name)) is not None}
        if "normalize" not in self.stages:
            raise MissingError(
                f"corpus {corpus}", "it was not built to normalize", "", "Run `python -m pipeline build` first."
            )
        self.parts = {name: self._parts(stage) for name, stage in self.stages.items()}
        self.duplicates = self.parts["normalize"].pop(DUPLICATES)
        self.database = duckdb.connect(":memory:", config={"threads": 1})

    def report(self) -> Report:
        self._create_views()
        params = stage_params(self.stages["normalize"])
        assert isinstance(params, NormalizeParams)
        return Report(
            corpus=self.corpus,
            snapshot_id=self.store.ref(self.corpus, "candidate") if "verify" in self.stages else None,
            limits=params.duplicates.model_dump(mode="json"),
            stages=self._steps(),
            sources=self._sources(),
            rules=self._rules(params),
            licenses=self._rows(_LICENSES),
            refusals=self._rows(_REFUSALS, num_samples=self.num_samples),
            clusters=self._rows(_CLUSTERS),
        )

    def _parts(self, stage: StoredObject) -> dict[str, StoredObject]:
        return {name: self.store.read(object_id) for name, object_id in parts_of(stage).items()}

    def _create_views(self) -> None:
        tables = {
            "collect_dropped": _paths(self.parts["collect"].values(), "dropped.parquet"),
            "normalize_dropped": _paths(self.parts["normalize"].values(), "dropped.parquet"),
            "documents": _paths(self.parts["normalize"].values(), "documents.parquet"),
            "duplicates": _paths([self.duplicates], "duplicates.parquet"),
            "kept": _paths([self.duplicates], "kept.parquet"),
        }
        for name, paths in tables.items():
            self.database.read_parquet(paths).create_view(name)
        self.database.execute(_VIEWS)

    def _steps(self) -> list[Row]:
        steps = []
        for name, stage in self.stages.items():
            if name == "normalize":
                steps += [self._rules_step(), {"stage": DUPLICATES, **_counts([self.duplicates])}]
            elif name != "verify":
                steps.append({"stage": name, **_counts([stage])})
        return steps

    def _rules_step(self) -> Row:
        return {"stage": "normalize", **_counts(list(self.parts["normalize"].values()))}

    def _sources(self) -> list[Row]:
        drops: dict[str, list[Row]] = {}
        for cell in self._rows(_CELLS):
            drops.setdefault(cell.pop("source"), []).append(cell)
        query = """select source, count(*) as num_files, sum(num_bytes)::bigint as num_bytes
            from documents semi join kept using (document_id) group by source"""
        kept = {row["source"]: row for row in self._rows(query)}
        tokens = self.parts.get("tokenize", {})
        return [
            {
                "source": name,
                "num_files_in": report_of(self.parts["normalize"][name]).rows_in,
                "num_bytes_in": report_of(self.parts["normalize"][name]).num_bytes_in,
                "num_files_kept": kept.get(name, {}).get("num_files", 0),
                "num_bytes_kept": kept.get(name, {}).get("num_bytes", 0),
                "num_tokens": report_of(tokens[name]).measures.get("num_tokens") if name in tokens else None,
                "drops": drops.get(name, []),
            }
            for name in self.parts["normalize"]
        ]

    def _rules(self, params: NormalizeParams) -> list[Row]:
        samples = self._rows(_SAMPLES, num_samples=self.num_samples)
        self._add_first_lines(samples, params)
        by_rule: dict[tuple[str, str], list[Row]] = {}
        for sample in samples:
            by_rule.setdefault((sample.pop("stage"), sample.pop("reason")), []).append(sample)
        return [{**rule, "samples": by_rule[rule["stage"], rule["reason"]]} for rule in self._rows(_RULES)]

    def _add_first_lines(self, samples: Sequence[Row], params: NormalizeParams) -> None:
        """Beside each sample that collect kept: the first lines of its scrubbed text."""
        contents: dict[tuple[str, str], bytes] = {}
        for source in sorted({sample["source"] for sample in samples}):
            paths = [sample["path"] for sample in samples if sample["source"] == source]
            files = _paths([self.parts["collect"][source]], "files.parquet")
            for row in self._rows(_CONTENT, files=files, paths=paths):
                contents[source, row["path"]] = row["content"]
        with Scrubber(params.scrub) as scrubber:
            for sample in samples:
                content = contents.get((sample["source"], sample["path"]))
                sample["first_lines"] = None if content is None else _first_lines(content, scrubber)

    def _rows(self, query: str, **parameters: Any) -> list[Row]:
        cursor = self.database.execute(query, parameters or None)
        names = [column[0] for column in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _paths(parts: Any, table: str) -> list[str]:
    return [str(path) for part in parts for path in part.paths(table)]


def _counts(objects: Sequence[StoredObject]) -> Row:
    reports = [report_of(stored) for stored in objects]
    dropped: dict[str, int] = {}
    for report in reports:
        for reason, count in report.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + count
    return {
        "rows_in": sum(report.rows_in for report in reports),
        "rows_out": sum(report.rows_out for report in reports),
        "num_bytes_in": sum(report.num_bytes_in for report in reports),
        "num_bytes_out": sum(report.num_bytes_out for report in reports),
        "dropped": dict(sorted(dropped.items(), key=lambda item: (-item[1], item[0]))),
    }


def _first_lines(content: bytes, scrubber: Scrubber) -> list[str]:
    """The first lines, scrubbed. A file is cut at a line's end before it is decoded; no text gives no lines."""
    cut = content[:MAX_SAMPLE_BYTES]
    if len(content) > len(cut):
        cut = cut[: cut.rfind(b"\n") + 1] or cut
    decoded = decode(cut)
    if isinstance(decoded, Refusal):
        return []
    scrubbed = scrubber.scrub(decoded.text)
    lines = scrubbed.text.split("\n")[:NUM_LINES] if scrubbed.is_clean else []
    return [line if len(line) <= MAX_LINE else line[:MAX_LINE] + " …" for line in lines]
