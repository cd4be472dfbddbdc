"""GATES: the one list of gates. A gate is a measure with a limit that can stop a stage.

A measure is a count or share in a stage's report (`StageReport.gate_measures`). Asset checks, the `gates` command, `promote` and
the tests read this list. To add a gate, report its measure where the stage counts (search for that of another of its gates) and
add one entry here.
"""

import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from pipeline.core.errors import BlockedError, MeasureError
from pipeline.core.params import Params, field_of
from pipeline.core.registry import Registry


class LimitComparison(StrEnum):
    """Side of the limit on which a measure must be."""

    AT_MOST = "at most"
    AT_LEAST = "at least"


_HOLDS = {LimitComparison.AT_MOST: operator.le, LimitComparison.AT_LEAST: operator.ge}


@dataclass(frozen=True)
class Limit:
    """A bound of a measure: a number, or the name of a field of the stage's Params. `passing` and `failing` are example values."""

    comparison: LimitComparison
    value: float | str
    passing: float
    failing: float

    def number(self, params: Params) -> float:
        """Return the limit as a number, read from the Params if it is the name of a field."""
        return float(field_of(params, self.value, f"limit {self.value}") if isinstance(self.value, str) else self.value)


CONSERVED = "num_rows_not_conserved"
"""Measure of the audit that each stage has a gate on."""
NONE = Limit(LimitComparison.AT_MOST, 0, passing=0, failing=1)
SOME = Limit(LimitComparison.AT_LEAST, 1, passing=1, failing=0)
"""At least one: an empty output does not pass."""


@dataclass(frozen=True)
class Gate:
    """A claim about a stage's output."""

    name: str
    stage: str
    measure: str
    limit: Limit
    why: str
    blocking: bool = True
    subjects: str = ""
    """Measure that counts what there was to judge. At zero the verdict says so; empty where there always is something."""

    def judge(self, measures: Mapping[str, float], params: Params) -> "GateVerdict":
        """Compare the measure with its limit. Raises MeasureError for one that was not reported: missing data never passes."""
        for needed in filter(None, (self.measure, self.subjects)):
            if needed not in measures:
                raise MeasureError(
                    f"gate {self.name}",
                    f"stage {self.stage} reports no measure {needed}",
                    f"one of {', '.join(sorted(measures))}",
                    "Report it in the stage, or correct the gate.",
                )
        comparison = self.limit.comparison
        measured, limit = float(measures[self.measure]), self.limit.number(params)
        passed = bool(_HOLDS[comparison](measured, limit))
        return GateVerdict(
            gate=self.name,
            stage=self.stage,
            blocking=self.blocking,
            measure=self.measure,
            measured=measured,
            comparison=str(comparison),
            limit=limit,
            passed=passed,
            why=self.why,
            has_subjects=not self.subjects or measures[self.subjects] > 0,
        )


@dataclass(frozen=True)
class GateVerdict:
    """The decision of a gate about one output."""

    gate: str
    stage: str
    blocking: bool
    measure: str
    measured: float
    comparison: str
    limit: float
    passed: bool
    why: str
    has_subjects: bool = True
    """False where there was nothing to judge: such a verdict blocks nothing and proves nothing."""

    @property
    def outcome(self) -> str:
        """The verdict in a word or three: `passed`, `nothing to judge`, `warning` or `failed`."""
        if not self.passed:
            return "failed" if self.blocking else "warning"
        return "passed" if self.has_subjects else "nothing to judge"

    @property
    def sentence(self) -> str:
        """The verdict as a person reads it."""
        word = "BLOCKED" if self.outcome == "failed" else self.outcome
        return f"{self.gate} {word}: {self.measure} is {self.measured:g}, must be {self.comparison} {self.limit:g}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"outcome": self.outcome}


_Row = tuple[str, str, str] | tuple[str, str, str, str]
"""Name, measure and why of a gate, and the measure of its subjects."""


def _of_stage(stage: str, *none: _Row, some: tuple[_Row, ...] = ()) -> list[Gate]:
    """Return the gates of a stage that allow none of a measure, those that require some, and the gate that loses no row."""
    every = (
        f"no_row_lost_in_{stage}",
        CONSERVED,
        "Every row of the stage before is kept or dropped with a reason, by name, and none comes from nowhere.",
    )
    rows = [(NONE, row) for row in (*none, every)] + [(SOME, row) for row in some]
    return [
        Gate(name, stage, measure, limit, why, subjects="".join(subjects))
        for limit, (name, measure, why, *subjects) in rows
    ]


GATES = Registry(
    "gate",
    *_of_stage(
        "collect",
        ("every_pin_verified", "num_failed_sources", "A source that is not the pinned one must not be trained on."),
        ("every_file_has_a_revision", "num_files_without_revision", "A file without a revision cannot be cited."),
        (
            "every_pin_declares_a_license",
            "num_pins_without_license_metadata",
            "License metadata is recorded when bytes are pinned; NOASSERTION says that nothing is known.",
        ),
        some=(("sources_hold_code", "num_source_files", "An empty corpus proves nothing."),),
    ),
    *_of_stage(
        "normalize",
        ("decoding_loses_nothing", "num_lossy_decodings", "A replacement character is invented text."),
        ("every_document_is_licensed", "num_unlicensed_kept", "Only parsed, allowed expressions with evidence."),
        ("no_secret_is_left", "num_unwaived_secrets", "A model repeats the secrets that it was shown."),
        (
            "no_known_secret_is_left",
            "num_known_secrets",
            "Rules of another project, which share nothing with the scrubber, find no secret in what is stored.",
        ),
        (
            "no_restriction_is_left",
            "num_restrictions_left",
            "Words of licenses and restrictions, searched without the license rule, are what the document's license says.",
        ),
        (
            "no_gibberish_is_left",
            "num_gibberish_left",
            "Shapes of wrongly decoded text, searched without the rules that decode, are in no document.",
        ),
        ("no_evaluation_item_is_left", "num_contaminated_left", "A benchmark that was trained on measures memory."),
        ("no_exact_duplicate_is_left", "num_exact_duplicates_left", "Copies are memorized and inflate every count."),
        (
            "no_text_inside_another_is_left",
            "num_texts_inside_others",
            "Windows of characters that at most 20 documents hold, searched without that rule, are in no larger one again.",
        ),
        ("drops_are_in_their_bands", "num_drop_reasons_outside_band", "A share that jumps shows a rule gone wrong."),
        (
            "languages_are_in_their_bands",
            "num_languages_outside_band",
            "A source whose shares of languages left the bands of its pin is not what was pinned.",
            "num_language_bands",
        ),
        some=(("documents_are_kept", "rows_out", "Rules that drop everything are wrong."),),
    ),
    Gate(
        "redactions_are_few",
        "normalize",
        "max_redacted_fraction",
        Limit(LimitComparison.AT_MOST, "max_redacted_fraction", passing=0.001, failing=0.99),
        "Secrets and addresses are a small share of any source: a scrubber that replaces more destroys code.",
    ),
    *_of_stage(
        "enrich",
        ("chunks_conserve_bytes", "num_bytes_changed", "Structure is stored beside the text and never changes it."),
        (
            "provenance_on_every_document",
            "num_documents_without_provenance",
            "Every document must record whether it was parsed or compiled.",
        ),
        ("provenance_on_every_byte", "num_bytes_without_provenance", "Each token records the parser of its structure."),
        (
            "build_shares_are_in_band",
            "num_sources_out_of_band",
            "A pin bounds the share of its source that a compiler must have read; a missing or failing tool shows here.",
            "num_sources_built",
        ),
        (
            "no_local_path_in_a_build_context",
            "num_local_paths_in_context",
            "Paths of a user's disk are personal data.",
            "num_sources_built",
        ),
    ),
    Gate(
        "degraded_share_is_in_band",
        "enrich",
        "broken_fraction",
        Limit(LimitComparison.AT_MOST, "max_degraded_fraction", passing=0.05, failing=0.9),
        "Many broken parses mean a wrong grammar or a wrong language.",
    ),
    *_of_stage(
        "tokenize",
        some=(("training_rows_exist", "num_rows_train", "A snapshot without training rows trains nothing."),),
    ),
    *_of_stage(
        "verify",
        ("round_trip_is_exact", "num_round_trip_failures", "decode(tokens) is the stored text, by SHA-256."),
        (
            "ids_are_the_tokenizers_own",
            "num_documents_encoded_otherwise",
            "Text has many spellings in ids, and one that the stored tokenizer gives it: stretches of a sample are encoded again.",
        ),
        ("every_table_matches_its_schema", "num_schema_mismatches", "Readers rely on names, types and schema version."),
        ("columns_are_as_long_as_the_ids", "num_misaligned_columns", "A token and its structure have the same index."),
        (
            "columns_are_the_documents_own",
            "num_documents_with_other_columns",
            "A token has the structure of its first byte, computed again from the document's own chunks, nodes and names.",
        ),
        ("specials_only_where_written", "num_special_ids_in_text", "Corpus text must never become a control id."),
        ("tokens_are_in_range", "num_ids_out_of_range", "An id past the vocabulary is a crash in training."),
        (
            "documents_are_rebuilt_from_rows",
            "num_documents_not_rebuilt",
            "Packing keeps every token: rows hold each document once and whole, in its split.",
        ),
        (
            "packing_follows_its_rule",
            "num_pieces_packed_otherwise",
            "Documents are cut where the rule has it, and rows that would fit into one are one: shorter pieces lose their context.",
        ),
        (
            "rows_respect_their_boundaries",
            "num_boundary_mismatches",
            "No target and no attention crosses documents; computed again from the lengths of the pieces.",
        ),
        (
            "commits_are_in_order",
            "num_commit_order_violations",
            "Commits of a file must be in chronological order.",
            "num_rows_of_commits",
        ),
        ("training_rows_equal_packed_rows", "num_training_rows_that_differ", "Training reads what the gates checked."),
        ("fractions_are_the_tokens_own", "num_fractions_that_differ", "A row says how much of it a compiler has read."),
        ("megatron_reads_back", "num_documents_megatron_changes", "An export to another trainer has the same tokens."),
        ("special_spellings_stay_text", "num_special_spellings_encoded_as_control", "Text injects no control tokens."),
        (
            "splits_are_apart",
            "num_texts_in_two_splits",
            "Held-out text must never be trained on.",
            "num_texts_held_out",
        ),
        (
            "held_out_sources_are_held_out",
            "num_documents_in_another_split",
            "The recipe's rule decides the split of each document, by source, path or hash, and nothing else does.",
        ),
        (
            "held_out_rows_exist",
            "num_rows_without_held_out",
            "A rule that holds out nothing of what was kept leaves no measure of what a model has learned.",
            "num_held_out_rules",
        ),
        ("canaries_are_caught", "num_canaries_missed", "Every build shows that rules still catch planted offenses."),
        (
            "every_gate_was_seen_red",
            "num_gates_not_seen_red",
            "A gate that was not seen to fail, in this build and with this code, proves nothing by passing.",
        ),
        (
            "loader_was_checked",
            "num_loader_rows_not_compared",
            "Each check of the loader compared all rows that it was asked for.",
        ),
        ("loader_repeats_itself", "num_loader_differences", "Two fresh processes, and a resume, read one order."),
        ("trainer_loss_is_finite", "num_non_finite_losses", "A loss that is not finite trains nothing."),
        some=(
            ("documents_were_decoded", "num_documents", "A check of nothing proves nothing."),
            ("canaries_were_sent", "num_canaries", "A check of nothing proves nothing."),
            ("trainer_takes_a_step", "num_smoke_steps", "The consumer's own loader and one optimizer step."),
        ),
    ),
    Gate(
        "rows_are_worth_reading",
        "verify",
        "trained_fraction",
        Limit(LimitComparison.AT_LEAST, "min_trained_fraction", passing=0.9, failing=0.1),
        "Padding costs as much as text and teaches nothing.",
    ),
    Gate(
        "tokens_carry_enough_text",
        "verify",
        "bytes_per_token",
        Limit(LimitComparison.AT_LEAST, "min_bytes_per_token", passing=3.3, failing=1.0),
        "A vocabulary that does not fit the corpus wastes every step.",
    ),
    Gate(
        "vocabulary_is_used",
        "verify",
        "unused_vocabulary_fraction",
        Limit(LimitComparison.AT_MOST, "max_unused_vocabulary_fraction", passing=0.3, failing=0.99),
        "Ids that never occur are parameters that never train.",
        blocking=False,
    ),
)


def gates_of(stage: str) -> tuple[Gate, ...]:
    """Return the gates of one stage, in declared order."""
    return tuple(gate for gate in GATES if gate.stage == stage)


def judge(stage: str, measures: Mapping[str, float], params: Params) -> tuple[GateVerdict, ...]:
    """Judge all gates of a stage. An error in a gate is raised: it never counts as passed."""
    return tuple(gate.judge(measures, params) for gate in gates_of(stage))


def summary(verdicts: Iterable[GateVerdict]) -> str:
    """Return how many gates passed, failed, warned and had nothing to judge, as a phrase."""
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    others = {"failed": "failed", "warning": "warned", "nothing to judge": "had nothing to judge"}
    said = [f", {outcomes[name]} {word}" for name, word in others.items() if outcomes[name]]
    return f"{outcomes['passed']} of {outcomes.total()} gates passed{''.join(said)}"


def refuse_blocked(
    verdicts: Iterable[GateVerdict], where: str, causes: str = "", object_id: str = "", questions: Sequence[str] = ()
) -> None:
    """Raise BlockedError naming every blocking gate that failed, its value and its limit, what was judged, and what to ask next."""
    blocked = [verdict for verdict in verdicts if verdict.blocking and not verdict.passed]
    if blocked:
        found = "; ".join(verdict.sentence for verdict in blocked)
        asked = ", ".join(f"`{each}`" for each in dict.fromkeys([*questions[:1], *questions[-1:]]))
        kept = f"What was judged is {object_id[:12]}; look at it by {asked}." if object_id and asked else ""
        parts = ("Neither candidate nor live moved.", causes, _remedies(blocked), kept)
        error = BlockedError(where, found, "", " ".join(part for part in parts if part))
        error.facts = {"id": object_id, "verdicts": [each.as_json() for each in blocked], "next": list(questions)}
        raise error


def _remedies(blocked: Sequence[GateVerdict]) -> str:
    """Return sentences with the fields by which what is sound, but small or unusual, passes the gates that failed.

    No stored stage tells what set a field: the last sentence holds wherever it was set.
    """
    found = []
    for verdict in blocked:
        limit = GATES[verdict.gate].limit.value if verdict.gate in GATES else 0.0
        found += [REMEDIES[verdict.gate]] if verdict.gate in REMEDIES else []
        found += [f"The limit is the field `{verdict.stage}.{limit}`."] if isinstance(limit, str) else []
    found += [_WHERE_FIELDS_ARE_SET] if any(" field `" in each for each in found) else []
    return " ".join(dict.fromkeys(found))


_WHERE_FIELDS_ARE_SET = "A field is as the recipe says, unless `--set`, the launchpad or the list of corpora sets it."


REMEDIES = {
    "every_pin_declares_a_license": (
        "Write `declared_license` in the pin, as `python -m pipeline pin NAME PATH --license MIT` does."
    ),
    "documents_are_kept": (
        "Most drops have a limit below the field `normalize.filters`, such as `normalize.filters.min_num_bytes`."
    ),
    "training_rows_exist": "Hold out less by the field `held_out`, or add a source.",
    "held_out_rows_exist": (
        "`python -m pipeline why SOURCE PATH` tells where what `held_out` names went: hold out other files, or set "
        "`held_out=[]`."
    ),
    "rows_are_worth_reading": "Sources of few tokens fill no long row: set the field `tokenize.row_length` lower.",
}
"""Sentences about what to do where a gate fails over sources that are too small for it, by the name of the gate."""
