"""GATES: the one list of gates. A gate is a measure with a limit that can stop a stage.

A measure is a count or share in a stage's report (`StageReport.gate_measures`); a limit is a number or the name of a field of the
stage's Params. Asset checks, the `gates` command, `promote` and the tests read this list. To add a gate, report its measure where
the stage counts (search for that of another of its gates) and add one entry here with a value that passes and one that fails.
"""

import operator
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from pipeline.core.errors import BlockedError, MeasureError
from pipeline.core.params import Params
from pipeline.core.registry import Registry


class LimitComparison(StrEnum):
    """Side of the limit on which a measure must be."""

    AT_MOST = "at most"
    AT_LEAST = "at least"


_HOLDS = {LimitComparison.AT_MOST: operator.le, LimitComparison.AT_LEAST: operator.ge}


@dataclass(frozen=True)
class Gate:
    """A claim about a stage's output. `passing` and `failing` are example values of the measure."""

    name: str
    stage: str
    measure: str
    comparison: LimitComparison
    limit: float | str
    why: str
    passing: float
    failing: float
    blocking: bool = True

    def limit_of(self, params: Params) -> float:
        """Return the limit as a number, read from the Params if it is the name of a field."""
        return float(getattr(params, self.limit)) if isinstance(self.limit, str) else float(self.limit)

    def judge(self, measures: Mapping[str, float], params: Params) -> "GateVerdict":
        """Compare the measure with its limit. Raises MeasureError for one that was not reported: missing data never passes."""
        if self.measure not in measures:
            raise MeasureError(
                f"gate {self.name}",
                f"stage {self.stage} reports no measure {self.measure}",
                f"one of {', '.join(sorted(measures))}",
                "Report it in the stage, or correct the gate.",
            )
        measured, limit = float(measures[self.measure]), self.limit_of(params)
        passed = bool(_HOLDS[self.comparison](measured, limit))
        return GateVerdict(
            self.name, self.stage, self.blocking, self.measure, measured, str(self.comparison), limit, passed, self.why
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

    @property
    def sentence(self) -> str:
        """The verdict as a person reads it."""
        word = "passed" if self.passed else ("BLOCKED" if self.blocking else "warning")
        return f"{self.gate} {word}: {self.measure} is {self.measured:g}, must be {self.comparison} {self.limit:g}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def _none(name: str, stage: str, measure: str, why: str, *, blocking: bool = True) -> Gate:
    """Return a gate that allows none of something."""
    return Gate(name, stage, measure, LimitComparison.AT_MOST, 0, why, passing=0, failing=1, blocking=blocking)


def _some(name: str, stage: str, measure: str, why: str) -> Gate:
    """Return a gate that requires at least one of something: an empty output does not pass."""
    return Gate(name, stage, measure, LimitComparison.AT_LEAST, 1, why, passing=1, failing=0)


GATES = Registry(
    "gate",
    _none(
        "every_pin_verified",
        "collect",
        "num_failed_sources",
        "A source that is not the pinned one must not be trained on.",
    ),
    _some("sources_hold_code", "collect", "num_source_files", "An empty corpus proves nothing."),
    _none(
        "every_file_has_a_revision",
        "collect",
        "num_files_without_revision",
        "A file without a revision cannot be cited.",
    ),
    _none(
        "every_pin_declares_a_license",
        "collect",
        "num_pins_without_license_metadata",
        "License metadata is recorded when bytes are pinned; NOASSERTION says that nothing is known.",
    ),
    _none("no_row_lost_in_collect", "collect", "num_rows_unaccounted", "Every file is kept or dropped with a reason."),
    _some("documents_are_kept", "normalize", "rows_out", "Rules that drop everything are wrong."),
    _none("decoding_loses_nothing", "normalize", "num_lossy_decodings", "A replacement character is invented text."),
    _none(
        "every_document_is_licensed",
        "normalize",
        "num_unlicensed_kept",
        "Only parsed, allowed expressions with evidence.",
    ),
    _none("no_secret_is_left", "normalize", "num_unwaived_secrets", "A model repeats the secrets that it was shown."),
    _none(
        "no_evaluation_item_is_left",
        "normalize",
        "num_contaminated_left",
        "A benchmark that was trained on measures memory.",
    ),
    _none(
        "no_exact_duplicate_is_left",
        "normalize",
        "num_exact_duplicates_left",
        "Copies are memorized and inflate every count.",
    ),
    _none(
        "drops_lie_in_their_bands",
        "normalize",
        "num_drop_reasons_outside_band",
        "A rule that goes wrong shows first as a share that jumps.",
    ),
    _none(
        "languages_lie_in_their_bands",
        "normalize",
        "num_languages_outside_band",
        "A source that turned into another language is another source.",
    ),
    _none(
        "no_row_lost_in_normalize",
        "normalize",
        "num_rows_unaccounted",
        "Every file is kept or dropped with a reason.",
    ),
    _none(
        "chunks_conserve_bytes",
        "enrich",
        "num_bytes_changed",
        "Structure is stored beside the text and never changes it.",
    ),
    _none(
        "provenance_on_every_document",
        "enrich",
        "num_documents_without_provenance",
        "Every document must record whether it was parsed or compiled.",
    ),
    _none(
        "provenance_on_every_byte",
        "enrich",
        "num_bytes_without_provenance",
        "Every token must record which parser produced its structure.",
    ),
    _none(
        "build_shares_are_in_band",
        "enrich",
        "num_sources_out_of_band",
        "A pin bounds the share of its source that a compiler must have read; a missing or failing tool shows here.",
    ),
    Gate(
        "degraded_share_is_in_band",
        "enrich",
        "broken_fraction",
        LimitComparison.AT_MOST,
        "max_degraded_fraction",
        "Many broken parses mean a wrong grammar or a wrong language.",
        passing=0.05,
        failing=0.9,
    ),
    _none(
        "no_local_path_in_a_build_context",
        "enrich",
        "num_local_paths_in_context",
        "A path of a user's machine is personal data.",
    ),
    _none(
        "no_row_lost_in_enrich", "enrich", "num_rows_unaccounted", "Every document is kept or dropped with a reason."
    ),
    _none(
        "no_row_lost_in_tokenize",
        "tokenize",
        "num_rows_unaccounted",
        "Every document is kept or dropped with a reason.",
    ),
    _some("training_rows_exist", "tokenize", "num_rows_train", "A snapshot without training rows trains nothing."),
    _some("documents_were_decoded", "verify", "num_documents", "A check of nothing proves nothing."),
    _none("round_trip_is_exact", "verify", "num_round_trip_failures", "decode(tokens) is the stored text, by SHA-256."),
    _none(
        "every_table_matches_its_schema",
        "verify",
        "num_schema_mismatches",
        "A reader relies on names, types and version of the stored tables.",
    ),
    _none(
        "columns_are_as_long_as_the_ids",
        "verify",
        "num_misaligned_columns",
        "The structure of a token must be that of the token at the same index.",
    ),
    _none(
        "specials_only_where_written",
        "verify",
        "num_special_ids_in_text",
        "Corpus text must never become a control id.",
    ),
    _none("tokens_are_in_range", "verify", "num_ids_out_of_range", "An id past the vocabulary is a crash in training."),
    _none(
        "documents_are_rebuilt_from_rows",
        "verify",
        "num_documents_not_rebuilt",
        "Packing keeps every token: rows hold each document once and whole, in its split.",
    ),
    _none(
        "rows_respect_their_boundaries",
        "verify",
        "num_boundary_mismatches",
        "No target and no attention crosses documents; computed again from the lengths of the pieces.",
    ),
    _none(
        "commits_are_in_order",
        "verify",
        "num_commit_order_violations",
        "Commits of a file must be in chronological order.",
    ),
    _none(
        "training_rows_equal_packed_rows",
        "verify",
        "num_training_rows_that_differ",
        "Training reads what the other gates have checked.",
    ),
    _none(
        "megatron_reads_back",
        "verify",
        "num_documents_megatron_changes",
        "An export that another trainer reads must hold the same tokens.",
    ),
    Gate(
        "rows_are_worth_reading",
        "verify",
        "trained_fraction",
        LimitComparison.AT_LEAST,
        "min_trained_fraction",
        "Padding costs as much as text and teaches nothing.",
        passing=0.9,
        failing=0.1,
    ),
    _none(
        "special_spellings_stay_text",
        "verify",
        "num_special_spellings_encoded_as_control",
        "Text of the corpus must not inject control tokens.",
    ),
    _none("splits_are_apart", "verify", "num_texts_in_two_splits", "Held-out text must never be trained on."),
    Gate(
        "tokens_carry_enough_text",
        "verify",
        "bytes_per_token",
        LimitComparison.AT_LEAST,
        "min_bytes_per_token",
        "A vocabulary that does not fit the corpus wastes every step.",
        passing=3.3,
        failing=1.0,
    ),
    Gate(
        "vocabulary_is_used",
        "verify",
        "unused_vocabulary_fraction",
        LimitComparison.AT_MOST,
        "max_unused_vocabulary_fraction",
        "Ids that never occur are parameters that never train.",
        passing=0.3,
        failing=0.99,
        blocking=False,
    ),
    _none(
        "canaries_are_caught",
        "verify",
        "num_canaries_missed",
        "Every build shows that the rules still catch planted offenses.",
    ),
    _some("canaries_were_sent", "verify", "num_canaries", "A check of nothing proves nothing."),
    _some("trainer_takes_a_step", "verify", "num_smoke_steps", "The consumer's own loader and one optimizer step."),
    _some("loader_was_checked", "verify", "num_loader_checks", "A check of nothing proves nothing."),
    _none(
        "loader_repeats_itself",
        "verify",
        "num_loader_differences",
        "Two fresh processes, and a resume, read one order.",
    ),
    _none("trainer_loss_is_finite", "verify", "num_non_finite_losses", "A loss that is not finite trains nothing."),
    _none(
        "no_row_lost_in_verify", "verify", "num_rows_unaccounted", "Every document is kept or dropped with a reason."
    ),
)


def gates_of(stage: str) -> tuple[Gate, ...]:
    """Return the gates of one stage, in declared order."""
    return tuple(gate for gate in GATES if gate.stage == stage)


def judge(stage: str, measures: Mapping[str, float], params: Params) -> tuple[GateVerdict, ...]:
    """Judge all gates of a stage. An error in a gate is raised: it never counts as passed."""
    return tuple(gate.judge(measures, params) for gate in gates_of(stage))


def refuse_blocked(verdicts: Iterable[GateVerdict], where: str, causes: str = "") -> None:
    """Raise BlockedError naming every blocking gate that failed, its value and its limit."""
    blocked = [verdict for verdict in verdicts if verdict.blocking and not verdict.passed]
    if blocked:
        found = "; ".join(verdict.sentence for verdict in blocked)
        raise BlockedError(where, found, "", f"No ref was moved. {causes}".rstrip())
