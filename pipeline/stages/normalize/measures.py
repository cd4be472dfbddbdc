"""Measures of normalize for its gates: counts over what is about to be stored, searched again and not taken from the rules."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b, sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline.contracts.part import EVIDENCE_LABEL, SCRATCH, PartJob, PartOutput, Tables
from pipeline.contracts.stage_report import StageReport
from pipeline.core.change_text import CHANGES
from pipeline.core.records import Document, LicenseEvidence, Split
from pipeline.core.table_names import DOCUMENTS, DROPPED, DUPLICATES, EVIDENCE, FILES, KEPT
from pipeline.lexing.languages import LANGUAGES, language_of
from pipeline.stages.normalize.contamination.decontaminate import WholeSolutions
from pipeline.stages.normalize.contamination.evaluation_items import EVALUATION_ITEMS, load_items
from pipeline.stages.normalize.decided_files import UNSCRUBBABLE, SourceDecisions
from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.duplicates.change_copies import CHANGE_SIGNATURES
from pipeline.stages.normalize.duplicates.duplicates import SIGNATURES, Reason, cleaned_sources
from pipeline.stages.normalize.duplicates.text_inside import find_text_inside
from pipeline.stages.normalize.encodings.decode import Decoded, decoded_again
from pipeline.stages.normalize.license.policy import CLASS_NAMES, LicenseClass, Policy, classify_expression, load_policy
from pipeline.stages.normalize.params import DuplicateParams, RulesIdentity, RulesParams
from pipeline.stages.normalize.scrub.credentials.random_literals import LeftBecause, left_literals
from pipeline.stages.normalize.scrub.scrub import Scrubber, source_scrubber
from pipeline.stages.normalize.text_gates.gibberish import gibberish_in_rows
from pipeline.stages.normalize.text_gates.gitleaks import WaivedFinding, find_in_rows
from pipeline.stages.normalize.text_gates.restrictions import restrictions_left

_PLACEHOLDER = "<redacted-"
_COUNTED = ["document_id", "num_bytes", "split"]
_DIGEST_BYTES = 16
_EVIDENCE = frozenset(LicenseEvidence) - {LicenseEvidence.NONE}


def measure_cleaned(job: PartJob, output: PartOutput) -> StageReport:
    """Return the report of one source after the rules, counted from its tables and the files that they were made of."""
    params, identity = cast(RulesParams, job.params), RulesIdentity(**job.identity)
    documents = [Document(**row) for row in output.tables[DOCUMENTS].to_pylist()]
    reasons = _reasons(output.tables[DROPPED])
    solutions = WholeSolutions(load_items(identity.evaluation_sha256, job.places.get(EVALUATION_ITEMS)))
    policy = load_policy(identity.license_policy_sha256)
    decisions = SourceDecisions.of_identity(identity.decisions)
    scrubber = source_scrubber(params.scrub)
    num_secrets = sum(_count_findings(document, decisions, scrubber) for document in documents)
    waived = waived_findings(output.tables[DOCUMENTS], decisions)
    measures = {
        **output.report.measures,
        "num_cleaned_documents": len(documents),
        "num_known_secrets": len(find_in_rows([output.tables[DOCUMENTS], output.tables[DROPPED]], waived)),
        "num_contaminated": reasons.get("contaminated", 0),
        "num_contaminated_left": sum(solutions.holds(document.text) for document in documents),
        "num_gibberish_left": sum(1 for _ in gibberish_in_rows(output.tables[DOCUMENTS])),
        "num_lossy_decodings": _count_lossy(documents, job),
        "num_restrictions_left": job.count(_count_restrictions, *_of_restrictions(output.tables[DOCUMENTS], job)),
        "num_redactions": sum(document.num_redactions for document in documents),
        "num_undecodable": reasons.get("undecodable", 0),
        "num_unlicensed_kept": sum(not is_licensed(document, policy) for document in documents),
        "num_unwaived_secrets": num_secrets,
        **_bytes_by_language(documents),
        **_left_literals(documents),
    }
    return replace(
        output.report,
        rows_in=len(documents) + sum(reasons.values()),
        rows_out=len(documents),
        dropped=reasons,
        num_bytes_out=sum(document.num_bytes for document in documents),
        measures=dict(sorted(measures.items())),
    )


def waived_findings(documents: pa.Table, decisions: SourceDecisions) -> dict[str, list[WaivedFinding]]:
    """Return the findings of the gate's rules that people waived, by path."""
    if not decisions.decisions:
        return {}
    rows = zip(documents["path"].to_pylist(), documents["blob_sha256"].to_pylist(), strict=True)
    found = {path: decisions.known(path, sha256) for path, sha256 in rows}
    return {path: waived for path, waived in found.items() if waived}


def _count_findings(document: Document, decisions: SourceDecisions, scrubber: Scrubber) -> int:
    """Count the findings in a text that nobody waived; none in one that was released with what is found in it."""
    decided = decisions.about(document.path, document.blob_sha256)
    return 0 if decided.releases(UNSCRUBBABLE) else scrubber.scan(document.path, document.text, decided.waived)


def redaction_measure(placeholder: str) -> str:
    """Return the name of the measure that counts the redactions of a detector."""
    return f"num_redactions_{placeholder.replace('-', '_')}"


def left_measure(reason: LeftBecause) -> str:
    """Return the name of the measure that counts the random literals that are left for a reason."""
    return f"num_literals_left_{reason}"


def _left_literals(documents: Sequence[Document]) -> dict[str, float]:
    """Count the random literals that are about to be stored, by the reason why they are no secrets."""
    counts = Counter(reason for document in documents for _, reason in left_literals(document.text))
    return {left_measure(reason): counts[reason] for reason in LeftBecause}


def measure_compared(job: PartJob, output: PartOutput) -> StageReport:
    """Return the report of all sources' documents once duplicates are dropped, counted from the tables."""
    sources = cleaned_sources(job.inputs)
    tables = [(stored, SIGNATURES) for _, stored in sorted(sources.items())]
    tables += [(stored, CHANGE_SIGNATURES) for stored, _ in tables if stored.identity.get(CHANGES)]
    kept = KeptIds(output.tables[KEPT])
    compared, held_out = Counter[str](), 0
    for table in (shard.table(name, _COUNTED) for stored, name in tables for shard in stored.shards):
        is_kept, num_bytes = kept.among(table["document_id"]), table["num_bytes"].to_numpy()
        compared += Counter(rows=table.num_rows, bytes=int(num_bytes.sum()))
        compared += Counter(kept=int(is_kept.sum()), bytes_kept=int(num_bytes[is_kept].sum()))
        held_out += sum(split == Split.HELD_OUT for split in table["split"].filter(pa.array(is_kept)).to_pylist())
    reasons = _reasons(output.tables[DUPLICATES])
    digests: list[bytes] = []
    with _scratch(job) as folder:
        inside = texts_inside(sources, kept, cast(DuplicateParams, job.params), digests, folder)
    return StageReport(
        rows_in=compared["rows"],
        rows_out=output.tables[KEPT].num_rows,
        dropped=reasons,
        num_bytes_in=compared["bytes"],
        num_bytes_out=compared["bytes_kept"],
        measures={
            "num_bytes_kept": compared["bytes_kept"],
            "num_copyleft_copies": reasons.get(Reason.COPYLEFT_COPY, 0),
            "num_documents": compared["kept"],
            "num_exact_duplicates": reasons.get(Reason.EXACT_DUPLICATE, 0),
            "num_exact_duplicates_left": _num_repeated(digests),
            "num_held_out_documents": held_out,
            "num_near_duplicates": reasons.get(Reason.NEAR_DUPLICATE, 0),
            "num_texts_inside_others": len(inside),
        },
    )


class KeptIds:
    """The ids of a table of what is kept, as 64 bits of a digest each: all of a large corpus are in memory."""

    def __init__(self, table: pa.Table) -> None:
        self._digests = np.sort(np.concatenate([np.empty(0, np.uint64), *map(_digests, table["document_id"].chunks)]))

    def among(self, ids: pa.ChunkedArray) -> NDArray[np.bool_]:
        """Return which of some ids are kept."""
        wanted = _digests(ids)
        if not len(self._digests):
            return np.zeros(len(wanted), np.bool_)
        places = np.minimum(np.searchsorted(self._digests, wanted), len(self._digests) - 1)
        found: NDArray[np.bool_] = self._digests[places] == wanted
        return found


def _digests(ids: pa.Array | pa.ChunkedArray) -> NDArray[np.uint64]:
    joined = b"".join(blake2b(name.encode(), digest_size=8).digest() for name in ids.to_pylist())
    return np.frombuffer(joined, np.uint64)


def _num_repeated(digests: Sequence[bytes]) -> int:
    """Count the digests, those of a shard one after the other, that others repeat."""
    found = np.sort(np.frombuffer(b"".join(digests), f"V{_DIGEST_BYTES}"))
    return int((found[1:] == found[:-1]).sum())


@contextmanager
def _scratch(job: PartJob) -> Iterator[Path | None]:
    """Make a folder for the windows of texts where the part has a place for what does not fit into memory."""
    if SCRATCH not in job.places:
        yield None
        return
    with TemporaryDirectory(dir=job.places[SCRATCH], prefix=".measure-") as folder:
        yield Path(folder)


def texts_inside(
    sources: Mapping[str, Tables],
    kept: KeptIds,
    params: DuplicateParams,
    digests: list[bytes] | None = None,
    folder: Path | None = None,
) -> list[tuple[str, str, float]]:
    """Return source and path of each kept document that lies in a larger one, and of that one, and the share that does.

    The search has another unit than the rule: its limit lies halfway between the rule's and the whole text. `digests`, if given,
    holds those of the kept texts then: of the stored text, not the one that copies were found by. Changes lie in versions of
    their files, and are not searched; of them the digest is that of the lines below their header. `folder` is for what does
    not fit into memory.
    """
    num_bytes = sum(_num_bytes(stored) for stored in sources.values()) if folder else 0
    digests = [] if digests is None else digests

    def texts() -> Iterator[bytes]:
        digests.clear()
        return _texts(sources, kept, digests)

    found = find_text_inside(texts, (1 + params.min_containment) / 2, folder, num_bytes)
    places = _places(sources, kept, {number for each in found for number in (each.part, each.whole)})
    return [(places[each.part], places[each.whole], each.share) for each in found]


def _num_bytes(stored: Tables) -> int:
    return int(stored.table(SIGNATURES, ["num_bytes"])["num_bytes"].to_numpy().sum())


def _kept_files(
    sources: Mapping[str, Tables], kept: KeptIds, column: str
) -> Iterator[tuple[str, list[tuple[pa.Scalar, bool]]]]:
    """Yield of each shard the source, and of what is kept of it a column and whether it is a change; one shard is in memory."""
    for source, shard in ((name, shard) for name in sorted(sources) for shard in sources[name].shards):
        table = shard.table(DOCUMENTS, ["document_id", column, "commit_hash"])
        table = table.filter(pa.array(kept.among(table["document_id"])))
        rows = zip(table[column], table["commit_hash"], strict=True)
        yield source, [(value, commit.is_valid) for value, commit in rows]


def _texts(sources: Mapping[str, Tables], kept: KeptIds, digests: list[bytes]) -> Iterator[bytes]:
    """Yield the kept texts of all sources, and append the digests of each shard."""
    for _, rows in _kept_files(sources, kept, "text"):
        found = []
        for text, is_change in rows:
            content = text.as_py().encode()
            if is_change:  # versions of a file lie in one another; what was changed counts, and not who said why
                found.append(sha256(content.split(b"\n", 2)[2]).digest()[:_DIGEST_BYTES])
            else:
                found.append(sha256(content).digest()[:_DIGEST_BYTES])
                yield content
        digests.append(b"".join(found))


def _places(sources: Mapping[str, Tables], kept: KeptIds, wanted: Collection[int]) -> dict[int, str]:
    """Return source and path of some kept texts, by their places in the order of all."""
    files = (
        f"{source} {path.as_py()}"
        for source, rows in (_kept_files(sources, kept, "path") if wanted else ())
        for path, is_change in rows
        if not is_change
    )
    return {number: name for number, name in enumerate(files) if number in wanted}


def is_licensed(document: Document, policy: Policy) -> bool:
    """Return whether the stored expression parses, is allowed or tagged as the document says, and has evidence."""
    found = classify_expression(document.license, policy)
    if isinstance(found, Drop) or document.license_class != CLASS_NAMES[found.license_class]:
        return False
    has_evidence = document.license_evidence in _EVIDENCE and bool(document.license_detail)
    return found.license_class < LicenseClass.REFUSED and has_evidence


def holds_the_characters(document: Document, content: bytes) -> bool:
    """Return whether a document has exactly the characters of its file, but for what a placeholder stands for.

    Redacting keeps the number of lines: a line that differs has a placeholder.
    """
    raw = decoded_again(content, Decoded(document.text, document.encoding, tuple(document.edits)))
    if raw is None or not document.num_redactions:
        return raw == document.text
    lines, stored = raw.split("\n"), document.text.split("\n")
    return len(lines) == len(stored) and all(
        line == other or _PLACEHOLDER in other for line, other in zip(lines, stored, strict=True)
    )


def _of_restrictions(documents: pa.Table, job: PartJob) -> tuple[pa.Table, pa.Table]:
    """Return the columns that restrictions are searched in."""
    files = job.inputs["files"].table(FILES, ["path", "content"])
    if EVIDENCE_LABEL in job.inputs:
        evidence = job.inputs[EVIDENCE_LABEL].table(EVIDENCE, ["path", "content"])
        own = pc.is_in(evidence["path"], value_set=files["path"].combine_chunks())
        files = pa.concat_tables([files, evidence.filter(pc.invert(own))])
    return documents.select(["path", "license", "license_evidence", "text"]), files


def _count_restrictions(documents: pa.Table, files: pa.Table) -> int:
    return sum(1 for _ in restrictions_left(documents, files))


def _count_lossy(documents: Sequence[Document], job: PartJob) -> int:
    """Count the documents whose stored text is not that of the file it was read from."""
    files = job.inputs["files"].table(FILES, ["path", "content"])
    contents: Mapping[str, bytes] = dict(zip(files["path"].to_pylist(), files["content"].to_pylist(), strict=True))
    return sum(not holds_the_characters(document, contents.get(document.path, b"")) for document in documents)


def _reasons(dropped: pa.Table) -> dict[str, int]:
    return dict(sorted(Counter(dropped["reason"].to_pylist()).items()))


def _bytes_by_language(documents: Sequence[Document]) -> dict[str, float]:
    num_bytes = dict.fromkeys(LANGUAGES.names, 0)
    for document in documents:
        if (language := language_of(document.path)) is not None:
            num_bytes[language.name] += document.num_bytes
    return {f"num_bytes_cleaned_{language}": number for language, number in num_bytes.items()}
