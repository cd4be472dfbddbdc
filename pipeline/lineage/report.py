"""Report: the outcome of every file of a corpus, by stage, rule, source and license, with samples and the clusters of duplicates.

Read from the stored tables with DuckDB. The same store gives the same report, byte for byte: samples are chosen by the digest of
their path, and no clock is read: times are those in the store. The lines that a sample shows of a file are scrubbed first.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from pipeline.build.seen_red import seen_red
from pipeline.build.stage_objects import report_of, stage_params
from pipeline.contracts.stage_report import evidence_files, total
from pipeline.core.change_text import header_of, is_change_path
from pipeline.core.table_names import DOCUMENTS, DROPPED, DUPLICATES, FILES, TOKENS
from pipeline.lexing.languages import LANGUAGES, language_of
from pipeline.lineage.queries import QueryRow, connect, create_drops, parts_of_kind, query, shown_names, table_files
from pipeline.lineage.ref_moves import ref_rows
from pipeline.lineage.report_evidence import canary_rows, change_since, gate_rows, left_rows, token_rows
from pipeline.lineage.stored_build import StoredBuild, stored_build
from pipeline.stages.normalize.decided_files import outcomes_in
from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.encodings.decode import decode
from pipeline.stages.normalize.measures import redaction_measure
from pipeline.stages.normalize.params import NormalizeParams
from pipeline.stages.normalize.scrub.credentials.random_literals import RANDOM_CONDITION
from pipeline.stages.normalize.scrub.detectors import placeholders
from pipeline.stages.normalize.scrub.scrub import Scrubber
from pipeline.stages.normalize.scrub.shown_text import shown_scrubber
from pipeline.stages.stages import STAGES, stage_with, step_with
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store

NUM_LINES, MAX_LINE, MAX_SAMPLE_BYTES = 12, 140, 20_000
_VIEWS = """
create view kept as select * from documents anti join drops on documents.document_id = drops.record_id;
create view lost as
    select drops.*, documents.license as document_license, license_class, license_evidence
    from drops left join documents on drops.record_id = documents.document_id;
create view licensed as
    select source, path, num_bytes, license, license_class, license_evidence, 'kept' as outcome from kept
    union all select source, path, num_bytes, document_license, license_class, license_evidence, reason
        from lost where document_license is not null
    union all select source, path, num_bytes, coalesce(license, 'none found'), '', '', reason
        from dropped_by_rules where reason like 'license%';
"""
_RULES = """select stage, reason, count(*) as num_files, sum(num_bytes)::bigint as num_bytes,
    count(distinct source) as num_sources from drops group by all order by num_files desc, stage, reason"""
_SUFFIXES = """select regexp_extract(path, '[.][^./]*$') as suffix, count(*) as num_files, sum(num_bytes)::bigint as num_bytes
    from kept group by suffix"""
_CELLS = """select source, stage, reason, count(*) as num_files, sum(num_bytes)::bigint as num_bytes
    from drops group by all order by source, num_files desc, stage, reason"""
_SAMPLES = """select stage, reason, source, path, num_bytes, detail, coalesce(license, document_license) as license from lost
    qualify row_number() over (partition by stage, reason order by md5(source || '/' || path)) <= $num_samples
    order by stage, reason, source, path"""
_LICENSES = """select license, max(license_class) as license_class, outcome, count(*) as num_files,
    sum(num_bytes)::bigint as num_bytes, count(distinct source) as num_sources
    from licensed group by license, outcome
    order by sum(count(*)) over (partition by license) desc, license, num_files desc, outcome"""
_REFUSALS = """select source, reason, license, replace(detail, path, 'this file') as evidence, count(*) as num_files,
    sum(num_bytes)::bigint as num_bytes, list(path order by md5(path))[:$num_samples] as paths
    from dropped_by_rules where reason like 'license%'
    group by all order by source, num_files desc, reason, license, evidence"""
_FILES = """select source, outcome, list(path order by path) as paths from (
        select source, path, 'kept' as outcome from kept union all select source, path, reason from drops
        order by outcome != 'kept', source, path limit $num_files
    ) group by source, outcome order by source, outcome != 'kept', outcome"""
_TEXTS = "select source, path, text from kept where regexp_matches(text, $expression) order by source, path"
_NUM_TEXTS = 64
"""Texts that are read at once."""
_CLUSTERS = """select cluster_id, any_value(keeper_source) as keeper_source, any_value(keeper_path) as keeper_path,
    count(*) as num_losers, sum(num_bytes)::bigint as num_bytes, min(jaccard) as min_jaccard,
    list({'source': source, 'path': path, 'num_bytes': num_bytes, 'jaccard': jaccard, 'reason': reason}
        order by jaccard desc, source, path) as losers
    from duplicates group by cluster_id order by num_losers desc, keeper_source, keeper_path"""
MAX_FILES = 50_000
"""Files that a report lists by name, those that are kept before others."""
_CONTENT = "select path, content from read_parquet($files) where list_contains($paths, path)"


@dataclass(frozen=True)
class Report:
    """The outcome of the files of a corpus, as tables of plain values. Bytes are those of the files."""

    corpus: str
    snapshot_id: str | None
    limits: QueryRow
    """The duplicates' thresholds, for the plot of similarities."""
    stages: list[QueryRow]
    """By step: rows and bytes in and out, drops by reason, and of what goes out the license evidence, which is no document.

    A stage can have several steps, such as `duplicates`. What goes out, less evidence, is what goes in next.
    """
    sources: list[QueryRow]
    """By source: files found, those of license evidence, source files collected and kept, tokens, and drops by step and reason."""
    rules: list[QueryRow]
    """By stage and reason: files, bytes, sources, and samples with the measured value and the first lines."""
    licenses: list[QueryRow]
    """By license expression and outcome."""
    languages: list[QueryRow]
    """By language: files and bytes that are kept. Files of evidence are in none."""
    redactions: dict[str, int]
    """By detector's placeholder: what was replaced in the texts, those of later dropped documents included."""
    left: list[QueryRow]
    """By reason: the random literals of kept files that are no secrets, how many files hold one, and the places of some."""
    refusals: list[QueryRow]
    """By source: the license that was refused or quarantined, on what evidence, and some of the paths."""
    decisions: list[QueryRow]
    """By decision of a person: the files, who and why, the number of files that it changed, and a sentence if it changed none."""
    clusters: list[QueryRow]
    """Each kept document with its dropped copies and their exact similarity."""
    gates: list[QueryRow]
    """By gate: the offenses that turned it red in the build, and the digest of the code that judged. No time is in it."""
    build: QueryRow
    """The build: its last object and that of each stage, and the gates that blocked it."""
    verdicts: list[QueryRow]
    """By gate: measured value, limit, outcome, and when it was judged."""
    tokens: list[QueryRow]
    """By source: documents, tokens, rows of each split, and bytes by what has read their structure."""
    canaries: list[QueryRow]
    """By what planted offenses were sent to: how many, how many were caught, and the names of the others."""
    refs: list[QueryRow]
    """The last moves of `live`, `candidate` and `last`, the newest first, with time and reason."""
    files: list[QueryRow]
    """By source and outcome: the paths of the files, as many as a report lists."""
    change: QueryRow | None
    """Difference to the build before, as `diff` gives it."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def report_corpus(store: Store, corpus: str, num_samples: int = 5, of: str | None = None) -> Report:
    """Report on a build, as `stored_build` finds it. Raises MissingError for one that has not reached normalize."""
    return _Reporter(stored_build(store, corpus, of), num_samples).report()


class _Reporter:
    """The stages' objects of a corpus, and a database with views of their tables."""

    def __init__(self, build: StoredBuild, num_samples: int) -> None:
        self.build, self.store, self.num_samples = build, build.store, num_samples
        self.cleaning = stage_with(DOCUMENTS).name
        build.stage(self.cleaning)  # raises if the corpus was not built that far
        self.stages = build.stages
        self.steps = {
            step: parts_of_kind(self.store, self.stages[stage.name], kind)
            for stage in STAGES
            if stage.name in self.stages
            for step, kind in stage.steps.items()
        }
        self.database = connect()

    def report(self) -> Report:
        """Create the views, then query each table of the report."""
        self._create_views()
        params = stage_params(self.stages[self.cleaning])
        assert isinstance(params, NormalizeParams)
        return Report(
            corpus=self.build.corpus,
            snapshot_id=self.build.snapshot_id,
            limits=params.duplicates.model_dump(mode="json"),
            stages=[{"stage": step, **_counts(self._reporting(step))} for step in self.steps],
            sources=self._sources(),
            rules=self._rules(params),
            licenses=self._rows(_LICENSES),
            languages=self._languages(),
            redactions=self._redactions(),
            left=self._left(),
            refusals=self._rows(_REFUSALS, num_samples=self.num_samples),
            decisions=self._decisions(),
            clusters=self._rows(_CLUSTERS),
            gates=self._gates(),
            build=self.build.facts() | {"stages": {name: each.object_id for name, each in self.stages.items()}},
            verdicts=list(gate_rows(self.build)),
            tokens=list(token_rows(self.build)),
            canaries=list(canary_rows(self.build)),
            refs=list(ref_rows(self.build.store, self.build.corpus)),
            files=self._files(),
            change=change_since(self.build),
        )

    def _create_views(self) -> None:
        rules, compared = self._parts_with(DOCUMENTS).values(), self._parts_with(DUPLICATES).values()
        tables = {
            "documents": table_files(rules, DOCUMENTS),
            "dropped_by_rules": table_files(rules, DROPPED),
            "duplicates": table_files(compared, DUPLICATES),
        }
        for name, paths in tables.items():
            self.database.read_parquet(paths).create_view(name)
        create_drops(self.database, self.store, self.stages)
        self.database.execute(_VIEWS)

    def _parts_with(self, table: str) -> dict[str, StoredObject]:
        """Return the parts that hold a table, by source; none if the corpus was not built that far."""
        return self.steps.get(step_with(table), {})

    def _reporting(self, step: str) -> list[StoredObject]:
        """Return the objects whose reports count a step: the stage's, or the parts of a stage with several steps."""
        is_stage = step in STAGES and len(STAGES[step].steps) == 1
        return [self.stages[step]] if is_stage else list(self.steps[step].values())

    def _sources(self) -> list[QueryRow]:
        drops: dict[str, list[QueryRow]] = defaultdict(list)
        for cell in self._rows(_CELLS):
            drops[cell.pop("source")].append(cell)
        sql = "select source, count(*) as num_files, sum(num_bytes)::bigint as num_bytes from kept group by source"
        kept = {row["source"]: row for row in self._rows(sql)}
        tokens = self._parts_with(TOKENS)
        rows = []
        for name, part in self._parts_with(DOCUMENTS).items():
            came, left = report_of(part), kept.get(name, {"num_files": 0, "num_bytes": 0})
            row = {"source": name, "num_files_in": came.rows_in, "num_bytes_in": came.num_bytes_in}
            row |= self._collected(name)
            row |= {"num_files_kept": left["num_files"], "num_bytes_kept": left["num_bytes"]}
            num_tokens = report_of(tokens[name]).measures.get("num_tokens") if name in tokens else None
            rows.append({**row, "num_tokens": num_tokens, "drops": drops[name]})
        return rows

    def _collected(self, source: str) -> QueryRow:
        """Count what collect found of a source: all files, and among them the license evidence."""
        counted = report_of(self._parts_with(FILES)[source])
        return {"num_files_found": counted.rows_in, "num_evidence_files": evidence_files(counted)[0]}

    def _languages(self) -> list[QueryRow]:
        counts: dict[str, list[int]] = {name: [0, 0] for name in LANGUAGES.names}
        for row in self._rows(_SUFFIXES):
            if (language := language_of(f"a{row['suffix']}")) is not None:
                counts[language.name][0] += row["num_files"]
                counts[language.name][1] += row["num_bytes"]
        return [{"language": name, "num_files": files, "num_bytes": size} for name, (files, size) in counts.items()]

    def _files(self) -> list[QueryRow]:
        rows = self._rows(_FILES, num_files=MAX_FILES)
        return [{**row, "paths": shown_names(row["paths"])} for row in rows]

    def _decisions(self) -> list[QueryRow]:
        parts = [part for _, part in sorted(self._parts_with(DOCUMENTS).items())]
        return [outcome.row() for part in parts for outcome in outcomes_in(part)]

    def _gates(self) -> list[QueryRow]:
        last = self.stages.get(STAGES.names[-1])
        seen = () if last is None else seen_red(self.store, last.object_id)
        names = ("gate", "stage", "offenses", "code")
        return [{name: getattr(each, name) for name in names} for each in seen]

    def _redactions(self) -> dict[str, int]:
        measures = total(map(report_of, self._parts_with(DOCUMENTS).values())).measures
        return {word: int(measures.get(redaction_measure(word), 0)) for word in placeholders()}

    def _left(self) -> list[QueryRow]:
        holding = self.database.execute(_TEXTS, {"expression": RANDOM_CONDITION})
        texts = chain.from_iterable(iter(lambda: holding.fetchmany(_NUM_TEXTS), []))
        return list(left_rows(texts, self.num_samples))

    def _rules(self, params: NormalizeParams) -> list[QueryRow]:
        samples = self._rows(_SAMPLES, num_samples=self.num_samples)
        self._add_first_lines(samples, params)
        by_rule: dict[tuple[str, str], list[QueryRow]] = defaultdict(list)
        for sample in samples:
            by_rule[sample.pop("stage"), sample.pop("reason")].append(sample)
        return [{**rule, "samples": by_rule[rule["stage"], rule["reason"]]} for rule in self._rows(_RULES)]

    def _add_first_lines(self, samples: Sequence[QueryRow], params: NormalizeParams) -> None:
        """Add to each sample that collect kept the first lines of its scrubbed text."""
        contents: dict[tuple[str, str], bytes] = {}
        for source in sorted({sample["source"] for sample in samples}):
            paths = [sample["path"] for sample in samples if sample["source"] == source]
            files = table_files([self._parts_with(FILES)[source]], FILES)
            for row in self._rows(_CONTENT, files=files, paths=paths):
                contents[source, row["path"]] = row["content"]
        scrubber = shown_scrubber(params.scrub)
        for sample in samples:
            content = contents.get((sample["source"], sample["path"]))
            sample["first_lines"] = None if content is None else _first_lines(sample["path"], content, scrubber)

    def _rows(self, sql: str, **parameters: Any) -> list[QueryRow]:
        return query(self.database, sql, **parameters)


def _counts(objects: Sequence[StoredObject]) -> QueryRow:
    counted = total(map(report_of, objects))
    num_evidence, num_evidence_bytes = evidence_files(counted)
    return {
        "rows_in": counted.rows_in,
        "rows_out": counted.rows_out,
        "num_bytes_in": counted.num_bytes_in,
        "num_bytes_out": counted.num_bytes_out,
        "num_evidence_files": num_evidence,
        "num_evidence_bytes": num_evidence_bytes,
        "dropped": dict(sorted(counted.dropped.items(), key=lambda item: (-item[1], item[0]))),
    }


def _first_lines(path: str, content: bytes, scrubber: Scrubber) -> list[str]:
    """Return the first lines, scrubbed. A file is cut at a line end before it is decoded; what is not text has no lines.

    Of a change only its header is shown: a hunk may begin within a secret, whose lines look like none by themselves.
    """
    content = header_of(content) if is_change_path(path) else content
    cut = content[:MAX_SAMPLE_BYTES]
    if len(content) > len(cut):
        cut = cut[: cut.rfind(b"\n") + 1] or cut
    decoded = decode(cut)
    if isinstance(decoded, Drop):
        return []
    scrubbed = scrubber.scrub(path, decoded.text)
    lines = scrubbed.text.split("\n")[:NUM_LINES] if scrubbed.is_clean else []
    return [line if len(line) <= MAX_LINE else line[:MAX_LINE] + " …" for line in lines]
