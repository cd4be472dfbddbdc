"""One source by the rules: decode, filter, license, scrub, sign. Each file becomes a Document or a DroppedRecord."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.contracts.part import PartJob, PartOutput
from pipeline.contracts.report import StageReport, count_reasons
from pipeline.core.languages import LANGUAGES, language_of
from pipeline.core.params import canonical_json
from pipeline.core.records import Document, DroppedRecord, LicenseEvidence
from pipeline.core.schema import table_of_records
from pipeline.cpp.lexer import token_hashes
from pipeline.normalize.contamination.decontaminate import ContaminationRecord, Decontaminator, Overlap, WholeSolutions
from pipeline.normalize.contamination.evaluation_items import EVALUATION_ITEMS, EvaluationItem, load_items
from pipeline.normalize.decode import Decoded, decode, is_lossless
from pipeline.normalize.duplicates.copyleft import CopyleftRecord
from pipeline.normalize.duplicates.duplicates import SignatureRecord
from pipeline.normalize.duplicates.shingles import (
    NUM_TOKENS_IN_SHINGLE,
    hashes_for_minhash,
    run_hashes,
    shingle_hashes,
    signature,
)
from pipeline.normalize.filters import first_broken, score
from pipeline.normalize.identity import RulesIdentity, document_id, text_sha256
from pipeline.normalize.license.decide import INHERITED, Licensed, LicenseIndex, PackageFacts
from pipeline.normalize.license.policy import Judged, LicenseClass, Policy, judge_expression, load_policy
from pipeline.normalize.params import RulesParams
from pipeline.normalize.refusal import Refusal
from pipeline.normalize.scrub.detectors import placeholders
from pipeline.normalize.scrub.scrub import Scrubber

DOCUMENTS = "documents.parquet"
DROPPED = "dropped.parquet"
SIGNATURES = "signatures.parquet"
COPYLEFT = "copyleft.parquet"
CONTAMINATION = "contamination.parquet"

Signed = tuple[NDArray[np.uint64], NDArray[np.uint32] | None]
"""Shingles, and the signature of a text that is not below the token floor."""


@dataclass(frozen=True)
class File:
    """A file of the collected source, as the rules need it."""

    source: str
    revision: str
    path: str
    blob_sha256: str
    content: bytes


def clean_source(job: PartJob) -> PartOutput:
    """The part function of `normalize/rules`."""
    assert isinstance(job.params, RulesParams)
    identity = RulesIdentity(**job.identity)
    table = job.inputs["files"].table(
        "files.parquet", ["source", "revision", "path", "blob_sha256", "content", "is_evidence"]
    )
    rows = sorted(table.to_pylist(), key=lambda row: str(row["path"]))
    evidence = {row["path"]: row["content"] for row in rows if row["is_evidence"]}
    files = [File(*(row[name] for name in File.__dataclass_fields__)) for row in rows if not row["is_evidence"]]
    items = load_items(identity.evaluation_sha256, job.places.get(EVALUATION_ITEMS))
    with SourceCleaner(evidence, identity, job.params, items) as cleaner:
        for file in files:
            cleaner.clean(file)
        return PartOutput(cleaner.tables(), cleaner.report(num_bytes_in=sum(len(file.content) for file in files)))


class SourceCleaner:
    """Takes the files of one source and collects what becomes of them."""

    def __init__(
        self,
        evidence: Mapping[str, bytes],
        identity: RulesIdentity,
        params: RulesParams,
        items: Sequence[EvaluationItem] = (),
    ) -> None:
        self._identity = identity
        self._params = params
        self._policy = load_policy(identity.license_policy_sha256)
        facts = PackageFacts(identity.declared_license, identity.inherit_license)
        self._licenses = LicenseIndex(evidence, facts, self._policy, params.licenses)
        self._scrubber = Scrubber(params.scrub)
        self._decontaminator = Decontaminator(items, params.decontamination, params.permutation_seed)
        self._left_over = WholeSolutions(items)
        self.contamination: list[ContaminationRecord] = []
        self.documents: list[Document] = []
        self.dropped: list[DroppedRecord] = []
        self.signatures: list[SignatureRecord] = []
        self.copyleft: list[CopyleftRecord] = []
        self._num_lossy = 0
        self._redactions = Counter(dict.fromkeys(placeholders(), 0))

    def __enter__(self) -> "SourceCleaner":
        self._scrubber.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._scrubber.__exit__(*error)

    def clean(self, file: File) -> None:
        """Send one file through the rules, cheap ones first."""
        decoded = decode(file.content)
        if isinstance(decoded, Refusal):
            self._drop(file, decoded)
            return
        scores = score(file.path, decoded.text)
        broken = first_broken(scores, self._params.filters)
        if broken:
            self._drop(file, broken)
            return
        licensed = self._licenses.decide(file.path, decoded.text)
        if isinstance(licensed, Refusal):
            # The digest of a text says nothing about it only once its secrets are gone.
            self._drop(file, licensed, self._scrubber.scrub(decoded.text).text)
            return
        self._keep(file, decoded, scores, licensed)

    def tables(self) -> dict[str, pa.Table]:
        """The part's tables, each in the order of paths."""
        return {
            DOCUMENTS: table_of_records(Document, self.documents),
            DROPPED: table_of_records(DroppedRecord, self.dropped),
            SIGNATURES: table_of_records(SignatureRecord, self.signatures),
            COPYLEFT: table_of_records(CopyleftRecord, self.copyleft),
            CONTAMINATION: table_of_records(ContaminationRecord, self.contamination),
        }

    def report(self, num_bytes_in: int) -> StageReport:
        """Counts, and what the gates ask of every cleaned document, looked up again in what is about to be stored."""
        reasons = count_reasons(self.dropped)
        return StageReport(
            rows_in=len(self.documents) + len(self.dropped),
            rows_out=len(self.documents),
            dropped=reasons,
            num_bytes_in=num_bytes_in,
            num_bytes_out=sum(document.num_bytes for document in self.documents),
            measures={
                "num_cleaned_documents": len(self.documents),
                "num_contaminated": reasons.get("contaminated", 0),
                "num_contaminated_left": sum(self._left_over.holds(document.text) for document in self.documents),
                "num_lossy_decodings": self._num_lossy,
                "num_redactions": sum(document.num_redactions for document in self.documents),
                **{f"num_redactions_{word.replace('-', '_')}": self._redactions[word] for word in self._redactions},
                "num_undecodable": reasons.get("undecodable", 0),
                "num_unlicensed_kept": sum(not is_licensed(document, self._policy) for document in self.documents),
                "num_unwaived_secrets": sum(self._scrubber.scan(document.text) for document in self.documents),
                **_bytes_by_language(self.documents),
            },
        )

    def _keep(self, file: File, decoded: Decoded, scores: dict[str, float], licensed: Licensed) -> None:
        scrubbed = self._scrubber.scrub(decoded.text)
        digest = text_sha256(scrubbed.text)
        if not scrubbed.is_clean:
            self._drop(
                file,
                Refusal("unscrubbable", "secrets or addresses were still found after 8 rounds", licensed.expression),
                scrubbed.text,
            )
            return
        code = token_hashes(scrubbed.text)
        overlap, signed = self._compare(scrubbed.text, code)
        if overlap:
            record_id = self._drop(file, Refusal("contaminated", overlap.detail, licensed.expression), scrubbed.text)
            self.contamination.append(ContaminationRecord(record_id, file.source, file.path, **asdict(overlap)))
            return
        self._num_lossy += not is_lossless(file.content, decoded)
        self._redactions.update(scrubbed.redactions)
        document = Document(
            document_id=document_id(file.source, file.path, digest),
            source=file.source,
            revision=file.revision,
            path=file.path,
            split=self._identity.split,
            text=scrubbed.text,
            text_sha256=digest,
            blob_sha256=file.blob_sha256,
            num_bytes=len(scrubbed.text.encode()),
            encoding=decoded.encoding,
            edits=decoded.edits,
            license=licensed.expression,
            license_class=licensed.license_class,
            license_branch=licensed.branch,
            license_evidence=licensed.evidence,
            license_detail=licensed.detail,
            num_redactions=scrubbed.num_redactions,
            scores=canonical_json(scores).decode(),
            repo_stable_id=None,
            filepath_stable_id=None,
            file_local_commit_index=None,
            commit_hash=None,
        )
        self.documents.append(document)
        self.signatures.append(_signature_row(document, len(code), *signed))

    def _compare(self, text: str, code: NDArray[np.uint64]) -> tuple[Overlap | None, Signed]:
        """The evaluation item that a text holds, and the shingles and signature that its duplicates are found by."""
        shingles = run_hashes(code, NUM_TOKENS_IN_SHINGLE)
        is_long = len(code) >= self._params.min_num_tokens
        values = signature(hashes_for_minhash(shingles), self._params.permutation_seed) if is_long else None
        return self._decontaminator.find(text, code, values), (shingles, values)

    def _drop(self, file: File, refusal: Refusal, text: str | None = None) -> str:
        digest = None if text is None else text_sha256(text)
        record_id = document_id(file.source, file.path, digest or file.blob_sha256)
        self.dropped.append(
            DroppedRecord(
                file.source,
                file.path,
                record_id,
                len(file.content),
                refusal.reason,
                refusal.detail,
                refusal.license,
                digest,
            )
        )
        if refusal.is_copyleft and text is not None and digest:
            shingles, values = _signed(text, self._params) if refusal.is_own else ((), ())
            self.copyleft.append(
                CopyleftRecord(record_id, file.source, file.path, digest, refusal.is_own, values, shingles)
            )
        return record_id


def _signature_row(
    document: Document, num_tokens: int, shingles: NDArray[np.uint64], values: NDArray[np.uint32] | None
) -> SignatureRecord:
    """The row that duplicates of a document are found by."""
    return SignatureRecord(
        document_id=document.document_id,
        source=document.source,
        path=document.path,
        split=document.split,
        num_bytes=document.num_bytes,
        text_sha256=document.text_sha256,
        is_inherited=document.license_evidence in INHERITED,
        num_tokens=num_tokens,
        num_shingles=len(shingles),
        signature=() if values is None else tuple(values.tolist()),
    )


def _signed(text: str, params: RulesParams) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shingles and signature of a copyleft text whose copies are looked for; empty below the token floor."""
    if len(token_hashes(text)) < params.min_num_tokens:
        return (), ()
    shingles = shingle_hashes(text)
    values = signature(hashes_for_minhash(shingles), params.permutation_seed)
    return tuple(shingles.tolist()), tuple(values.tolist())


def is_licensed(document: Document, policy: Policy) -> bool:
    """Whether the stored expression parses, is allowed or tagged, and has evidence.

    Asked of the record, not of the rule.
    """
    judged = judge_expression(document.license, policy)
    has_evidence = document.license_evidence != LicenseEvidence.NONE and bool(document.license_detail)
    return isinstance(judged, Judged) and judged.license_class < LicenseClass.REFUSED and has_evidence


def _bytes_by_language(documents: list[Document]) -> dict[str, float]:
    num_bytes = dict.fromkeys(LANGUAGES.names, 0)
    for document in documents:
        if (language := language_of(document.path)) is not None:
            num_bytes[language.name] += document.num_bytes
    return {f"num_bytes_cleaned_{language}": number for language, number in num_bytes.items()}
