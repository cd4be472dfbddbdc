"""Cleaning of one source: decode, filter, license, scrub, sign. Each file or change becomes a Document or a DroppedRecord."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.contracts.part import EVIDENCE_LABEL, PartJob, PartOutput, Tables
from pipeline.contracts.stage_report import StageReport
from pipeline.contracts.withheld_paths import withheld_path
from pipeline.core.change_text import changed_file, hunks_of
from pipeline.core.digests import document_id, text_sha256
from pipeline.core.params import canonical_json
from pipeline.core.records import Document, DroppedRecord
from pipeline.core.schema import table_of_records
from pipeline.core.table_names import DOCUMENTS, DROPPED, EVIDENCE, FILES
from pipeline.lexing.language_lexers import lexer_of
from pipeline.pins.decisions import DECISIONS
from pipeline.pins.held_out import HeldOut
from pipeline.stages.normalize.contamination.decontaminate import (
    CONTAMINATION,
    ContaminationRecord,
    Decontaminator,
)
from pipeline.stages.normalize.contamination.evaluation_items import EVALUATION_ITEMS, EvaluationItem, load_items
from pipeline.stages.normalize.decided_files import QUARANTINED, UNSCRUBBABLE, FileDecisions, SourceDecisions
from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.duplicates.change_copies import CHANGE_SIGNATURES
from pipeline.stages.normalize.duplicates.contained_pairs import sampled_shingles
from pipeline.stages.normalize.duplicates.copyleft import COPYLEFT, CopyleftRecord
from pipeline.stages.normalize.duplicates.duplicates import SIGNATURES, SignatureRecord
from pipeline.stages.normalize.duplicates.shingles import (
    NUM_TOKENS_IN_SHINGLE,
    hashes_for_minhash,
    run_hashes,
    signature,
    without_includes,
)
from pipeline.stages.normalize.encodings.decode import Decoded, decode
from pipeline.stages.normalize.filters.filters import Scores, first_broken, score
from pipeline.stages.normalize.license.decide import (
    NO_RULING,
    LicenseDecision,
    LicenseRuling,
    PackageFacts,
    SourceLicenses,
)
from pipeline.stages.normalize.license.policy import load_policy
from pipeline.stages.normalize.license.source_changes import Chronology, Evidence, Scrubbing, SourceChanges
from pipeline.stages.normalize.measures import redaction_measure
from pipeline.stages.normalize.params import DecontaminationRules, RulesIdentity, RulesParams
from pipeline.stages.normalize.scrub.detectors import DETECTORS, placeholders
from pipeline.stages.normalize.scrub.scrub import MAX_ROUNDS, Scrubbed, Scrubber, source_scrubber
from pipeline.stages.normalize.scrub.shown_text import ShownText
from pipeline.stages.normalize.text_gates.gitleaks import WaivedFinding, find_known_secrets
from pipeline.stages.normalize.text_gates.restrictions import find_restrictions

_scrubbed_evidence: dict[Hashable, dict[str, bytes]] = {}
"""Evidence of the last source in shards, scrubbed."""
_NOTHING_KNOWN = ("SPDX-License-" + "Identifier: NOASSERTION\n").encode()


@dataclass(frozen=True)
class CollectedFile:
    """A file of the collected source."""

    source: str
    revision: str
    path: str
    blob_sha256: str
    content: bytes


@dataclass(frozen=True)
class Scrubbers:
    """The scrubber of texts, and that of all else that becomes a field of a record."""

    text: Scrubber
    shown: ShownText


def clean_source(job: PartJob) -> PartOutput:
    """Run the part function of `normalize/rules`."""
    assert isinstance(job.params, RulesParams)
    identity = RulesIdentity(**job.identity)
    table = job.inputs["files"].table(FILES, ["source", "revision", "path", "blob_sha256", "content", "is_evidence"])
    rows = sorted(table.to_pylist(), key=lambda row: str(row["path"]))
    files = [
        CollectedFile(*(row[name] for name in CollectedFile.__dataclass_fields__))
        for row in rows
        if not row["is_evidence"]
    ]
    items = load_items(identity.evaluation_sha256, job.places.get(EVALUATION_ITEMS))
    scrubber = source_scrubber(job.params.scrub)
    shown_text = ShownText(job.params.scrub)
    own = {row["path"]: _without_secrets(row["content"], shown_text) for row in rows if row["is_evidence"]}
    evidence = dict(sorted({**_evidence_of_source(job, shown_text), **own}.items()))
    cleaner = SourceCleaner(evidence, identity, job.params, Scrubbers(scrubber, shown_text), items)
    if identity.changes:
        cleaner.read_changes(job.inputs["files"], evidence)
    for file in cleaner.in_chains(files):
        cleaner.clean(file)
    report = cleaner.report(sum(len(file.content) for file in files), EVIDENCE_LABEL in job.inputs)
    return PartOutput(cleaner.tables(), report, cleaner.files())


def _path(record: Document | DroppedRecord | ContaminationRecord) -> str:
    return record.path


def _evidence_of_source(job: PartJob, shown_text: ShownText) -> dict[str, bytes]:
    """Return the evidence of the whole source of a shard without secrets, by path; nothing for a source in one part, whose files
    hold it. A process scrubs it once for all shards that it cleans.
    """
    if EVIDENCE_LABEL not in job.inputs:
        return {}
    assert isinstance(job.params, RulesParams)
    stored = job.inputs[EVIDENCE_LABEL]
    key = (stored.object_id, job.params.scrub, tuple(DETECTORS))
    if key not in _scrubbed_evidence:
        table = stored.table(EVIDENCE)
        _scrubbed_evidence.clear()
        _scrubbed_evidence[key] = {
            path: _without_secrets(content, shown_text)
            for path, content in zip(table["path"].to_pylist(), table["content"].to_pylist(), strict=True)
        }
    return _scrubbed_evidence[key]


def _is_known(text: str, waived: WaivedFinding) -> bool:
    """Return whether the rules of the gate find in a text what is waived."""
    return len(find_known_secrets(text)) > len(find_known_secrets(text, [waived]))


def _is_refused_by_gate(text: str, decision: LicenseDecision) -> bool:
    """Return whether a text would be kept and the gate on restrictions refuse it, until a person concludes its license."""
    return decision.drop_reason is None and bool(find_restrictions(text, decision.expression or ""))


def _without_secrets(content: bytes, shown_text: ShownText) -> bytes:
    """Return a file of license evidence as UTF-8 without secrets. One that cannot be scrubbed says that nothing is known."""
    decoded = decode(content)
    text = decoded.text if isinstance(decoded, Decoded) else content.decode("utf-8", "replace")
    found = shown_text.evidence(text)
    return _NOTHING_KNOWN if found is None else found.encode()


@lru_cache(maxsize=4)
def _decontaminator(items: tuple[EvaluationItem, ...], rules: DecontaminationRules, seed: int) -> Decontaminator:
    """Make a Decontaminator once for all sources: it reads every solution."""
    return Decontaminator(items, rules, seed)


class SourceCleaner:
    """Applies the rules to the files of one source, and collects the records."""

    def __init__(
        self,
        evidence: Mapping[str, bytes],
        identity: RulesIdentity,
        params: RulesParams,
        scrubbers: Scrubbers,
        items: Sequence[EvaluationItem] = (),
    ) -> None:
        self._identity = identity
        self._params = params
        self._policy = load_policy(identity.license_policy_sha256)
        self._rule = None if identity.held_out is None else HeldOut.model_validate(identity.held_out)
        self._licenses = self._licenses_of(evidence, True)
        self._changes: SourceChanges | None = None
        self._scrubbers = scrubbers
        self._decisions = SourceDecisions.of_identity(identity.decisions)
        self._decontaminator = _decontaminator(tuple(items), params.decontamination, params.permutation_seed)
        self.contamination: list[ContaminationRecord] = []
        self.documents: list[Document] = []
        self.dropped: list[DroppedRecord] = []
        self.signatures: list[SignatureRecord] = []
        self.copyleft: list[CopyleftRecord] = []
        self.change_signatures: list[SignatureRecord] = []
        self._redactions = Counter(dict.fromkeys(placeholders(), 0))

    def read_changes(self, collected: Tables, evidence: Evidence) -> None:
        """Read what the licenses of the source's changes depend on, before any file is cleaned."""
        scrubbing = Scrubbing(
            lambda path, text: self._scrubbers.text.scrub(path, text).text,
            lambda content: _without_secrets(content, self._scrubbers.shown),
        )
        self._changes = SourceChanges(collected, evidence, self._licenses_of, scrubbing)

    def in_chains(self, files: Iterable[CollectedFile]) -> list[CollectedFile]:
        """Sort files by path, each before the changes of it, which follow each other: their versions are read once."""
        return sorted(files, key=lambda file: self._changes.place(file.path) if self._changes else (file.path, 0))

    def _licenses_of(self, evidence: Evidence, is_of_pin: bool) -> SourceLicenses:
        """Return what decides licenses by some evidence. What the pin declares is about the files that it names."""
        declared = self._identity.declared_license if is_of_pin else ""
        facts = PackageFacts(declared, self._identity.inherit_license)
        return SourceLicenses(evidence, facts, self._policy, self._params.licenses)

    def _changes_with(self, file: CollectedFile) -> SourceChanges | None:
        """Return the changes of the source if the file is one of them."""
        return self._changes if self._changes and self._changes.holds(file.path) else None

    def clean(self, file: CollectedFile) -> None:
        """Apply the rules to one file, and record what became of the decisions about it."""
        decided = self._decisions.about(file.path, file.blob_sha256)
        num_dropped = len(self.dropped)
        self._apply_rules(file, decided)
        reason = self.dropped[-1].reason if len(self.dropped) > num_dropped else None
        if decided.decisions or decided.other_bytes:
            self._decisions.settle(decided, self._scrubbers.shown.name(file.path), file.blob_sha256, reason)

    def _apply_rules(self, file: CollectedFile, decided: FileDecisions) -> None:
        """Keep or drop one file, by the cheap rules first."""
        if self._scrubbers.shown.holds_secret(file.path):
            shown = self._scrubbers.shown.name(file.path)
            detail = f"its path holds a secret or an e-mail address, and a path is never changed: {shown}"
            self._drop(replace(file, path=withheld_path(file.path)), Drop(UNSCRUBBABLE, detail))
            return
        decoded = decode(file.content)
        if isinstance(decoded, Drop):
            self._drop(file, decoded)
            return
        scores = score(file.path, decoded.text)
        broken = first_broken(scores, self._params.filters, decided.releases, scores.text)
        if broken:
            self._drop(file, broken)
            return
        scrubbed = self._scrubbers.text.scrub(file.path, decoded.text, decided.waived)
        # Of the scrubbed text, so that no expression, which may be cut, holds a secret.
        decision = self._license(file, scrubbed.text, decided)
        if decision.drop:
            # Only of a scrubbed text does the digest reveal nothing about secrets.
            record_id = self._drop(file, decision.drop, scrubbed.text)
            self._add_copyleft(record_id, file, scrubbed.text, decision)
        elif detail := self._left(file, scrubbed, decided):
            self._drop(file, Drop(UNSCRUBBABLE, detail, decision.expression), scrubbed.text)
        else:
            decided.use_waivers(scrubbed.text, lambda waived: _is_known(scrubbed.text, waived))
            self._keep(file, decoded, scores, decision, scrubbed)

    def _left(self, file: CollectedFile, scrubbed: Scrubbed, decided: FileDecisions) -> str:
        """Return what scrubbing left in a text that nobody released, or the empty string."""
        if not scrubbed.is_clean and not decided.releases(UNSCRUBBABLE):
            return f"secrets or addresses were still found after {MAX_ROUNDS} rounds"
        changes = self._changes_with(file)
        if changes and changes.holds_replaced(file.path, scrubbed.text):
            return "it holds a line of which something is replaced where the whole file is read"
        return ""

    def _decide(self, file: CollectedFile, text: str, ruling: LicenseRuling = NO_RULING) -> LicenseDecision:
        changes = self._changes_with(file)
        return changes.decide(file.path, ruling) if changes else self._licenses.decide(file.path, text, ruling)

    def _license(self, file: CollectedFile, text: str, decided: FileDecisions) -> LicenseDecision:
        """Return the license of a file, as a person decided it or as the evidence says."""
        ruling, conflict = decided.ruling, decided.conflict
        if conflict:
            return LicenseDecision(None, conflict.detail, QUARANTINED)
        decision = self._decide(file, text, ruling)
        if ruling is not NO_RULING:
            alone = self._decide(file, text)
            is_other = (decision.drop_reason, decision.expression) != (alone.drop_reason, alone.expression)
            if is_other or (ruling.expression and _is_refused_by_gate(text, alone)):
                decided.use_license(is_released=ruling.expression is None)
        return decision

    def tables(self) -> dict[str, pa.Table]:
        """Return the part's tables, each in the order of paths."""
        tables = {
            DOCUMENTS: table_of_records(Document, sorted(self.documents, key=_path)),
            DROPPED: table_of_records(DroppedRecord, sorted(self.dropped, key=_path)),
            SIGNATURES: table_of_records(SignatureRecord, self.signatures),
            COPYLEFT: table_of_records(CopyleftRecord, self.copyleft),
            CONTAMINATION: table_of_records(ContaminationRecord, sorted(self.contamination, key=_path)),
        }
        signed = {CHANGE_SIGNATURES: table_of_records(SignatureRecord, self.change_signatures)}
        return tables | (signed if self._changes else {})

    def files(self) -> dict[str, bytes]:
        """Return the part's files: what became of the decisions about the source, if there are any."""
        outcomes = [outcome.as_json() for outcome in self._decisions.outcomes()]
        return {DECISIONS: canonical_json(outcomes)} if outcomes else {}

    def report(self, num_bytes_in: int, is_shard: bool) -> StageReport:
        """Return the counts that the tables do not hold: the bytes of the files, the redactions of each detector, decisions."""
        measures: dict[str, float] = {redaction_measure(word): number for word, number in self._redactions.items()}
        if outcomes := [each for each in self._decisions.outcomes() if each.files or not is_shard]:
            measures["num_decisions"] = len(outcomes)
            measures["num_decisions_without_effect"] = sum(not outcome.has_effect for outcome in outcomes)
        return StageReport(0, 0, num_bytes_in=num_bytes_in, measures=measures)

    def _keep(
        self,
        file: CollectedFile,
        decoded: Decoded,
        scores: Scores,
        decision: LicenseDecision,
        scrubbed: Scrubbed,
    ) -> None:
        """Add the Document and its signature, unless the text holds the solution of an evaluation item."""
        lexer = lexer_of(file.path)
        code = lexer.token_hashes(scrubbed.text)
        shingles, values = self._sign(code)
        overlap = self._decontaminator.find(code, lexer.comment_hashes(scrubbed.text), values)
        if overlap:
            record_id = self._drop(file, Drop("contaminated", overlap.detail, decision.expression), scrubbed.text)
            item = {**asdict(overlap), "item_id": self._scrubbers.shown.shown(overlap.item_id)}
            self.contamination.append(ContaminationRecord(record_id, file.source, file.path, **item))
            return
        assert decision.expression is not None
        digest = text_sha256(scrubbed.text)
        changes = self._changes_with(file)
        chronology = changes.chronology(file.path) if changes else Chronology()
        self._redactions.update(scrubbed.redactions)
        document = Document(
            document_id=document_id(file.source, file.path, digest),
            source=file.source,
            revision=file.revision,
            path=file.path,
            split=self._rule.split(file.source, changed_file(file.path)) if self._rule else self._identity.split,
            text=scrubbed.text,
            text_sha256=digest,
            blob_sha256=file.blob_sha256,
            num_bytes=len(scrubbed.text.encode()),
            encoding=decoded.encoding,
            edits=decoded.edits,
            license=decision.expression,
            license_class=decision.license_class,
            license_branch=decision.branch,
            license_evidence=decision.evidence,
            license_detail=self._scrubbers.shown.shown(decision.detail),
            num_redactions=scrubbed.num_redactions,
            scores=canonical_json(dict(scores)).decode(),
            **asdict(chronology),
        )
        self.documents.append(document)
        compared_text = text_sha256(hunks_of(scrubbed.text)) if changes else digest
        compared = (document.document_id, file.source, file.path, document.split, document.num_bytes, compared_text)
        body = run_hashes(without_includes(code), NUM_TOKENS_IN_SHINGLE)
        lists = () if values is None else (values, sampled_shingles(body))
        signed = tuple(tuple(each.tolist()) for each in lists) or ((), ())
        sizes = (len(code), len(shingles), len(body))
        of_kind = self.change_signatures if changes else self.signatures
        of_kind.append(SignatureRecord(*compared, decision.is_inherited, *sizes, *signed))

    def _sign(self, code: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint32] | None]:
        """Return the shingles of a text's tokens, and the signature if there are enough tokens for one."""
        shingles = run_hashes(code, NUM_TOKENS_IN_SHINGLE)
        is_long = len(code) >= self._params.min_num_tokens
        return shingles, signature(hashes_for_minhash(shingles), self._params.permutation_seed) if is_long else None

    def _drop(self, file: CollectedFile, drop: Drop, text: str | None = None) -> str:
        """Add a DroppedRecord and return its id."""
        digest = None if text is None else text_sha256(text)
        record_id = document_id(file.source, file.path, digest or file.blob_sha256)
        num_bytes = len(file.content)
        shown = self._scrubbers.shown.shown
        detail, license = shown(drop.detail), None if drop.license is None else shown(drop.license)
        self.dropped.append(
            DroppedRecord(file.source, file.path, record_id, num_bytes, drop.reason, detail, license, digest)
        )
        return record_id

    def _add_copyleft(self, record_id: str, file: CollectedFile, text: str, decision: LicenseDecision) -> None:
        """Add a CopyleftRecord for a copyleft text; with shingles and signature only if the file states copyleft itself.

        A change is no text that others copy: a copy of its file goes with all changes of that.
        """
        if not decision.is_copyleft or self._changes_with(file):
            return
        code = lexer_of(file.path).token_hashes(text)
        shingles, values = self._sign(code) if decision.is_own else (code, None)
        signed = ((), ()) if values is None else (tuple(values.tolist()), tuple(shingles.tolist()))
        self.copyleft.append(
            CopyleftRecord(record_id, file.source, file.path, text_sha256(text), decision.is_own, *signed)
        )
