"""Decidable things: the reasons of drops that a decision may release, what it may waive, and the licenses that it may conclude.

What no decision releases: what the policy refuses, what is withdrawn, what holds the solution of an evaluation item, copies, what
cannot be decoded, and a path that holds a secret.
"""

import re
from collections.abc import Iterable

from pipeline.core.errors import DecisionError
from pipeline.pins.decisions import Decision
from pipeline.stages.normalize.decided_files import QUARANTINED, UNSCRUBBABLE
from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.filters.filters import FILTERS
from pipeline.stages.normalize.license.policy import refuse_no_expression
from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.detectors import DETECTORS, placeholders
from pipeline.stages.normalize.scrub.shown_text import ShownText
from pipeline.stages.normalize.text_gates.gitleaks import load_gitleaks_rules

_WORD = re.compile(r"[a-z]+(?:[_-][a-z]+)*")


def refuse_undecidable(decisions: Iterable[Decision], subject: str) -> None:
    """Raise DecisionError about `subject` for the first decision that nothing may follow from."""
    shown = ShownText(ScrubParams())
    for decision in decisions:
        _refuse_secrets(decision, subject, shown)
        name = f"{subject}: {decision.name}"
        if decision.license is not None:
            _refuse_unknown_license(decision.license, name)
        if decision.waive is not None:
            _refuse_unknown_finding(decision.waive, name)
        _refuse_unknown_reasons(decision, name)


def _refuse_secrets(decision: Decision, subject: str, shown: ShownText) -> None:
    names = [name for name in ("path", "license") if shown.holds_secret(getattr(decision, name) or "")]
    if names:
        found = f"the {names[0]} of a decision about {decision.source} holds a secret"
        remedy = "A decision is committed and printed; no file whose path holds a secret is kept."
        raise DecisionError(subject, found, "none", remedy)


def _refuse_unknown_license(license: str, subject: str) -> None:
    found = refuse_no_expression(license, subject, DecisionError)
    if not isinstance(found, Drop) and found.expression != license:
        remedy = "Write it so: a license is stored in its normal spelling."
        raise DecisionError(subject, f"license is {license!r}", f"{found.expression!r}", remedy)


def _refuse_unknown_finding(name: str, subject: str) -> None:
    words = sorted({*placeholders(), *DETECTORS.names})
    if name not in words and name not in _rule_names():
        remedy = "`secret` is every secret; the note of a blocked gate names the rule."
        raise DecisionError(
            subject, f"waive is {_shown(name)}", f"one of {', '.join(words)}, or a rule of gitleaks.toml", remedy
        )


def _refuse_unknown_reasons(decision: Decision, subject: str) -> None:
    reasons = [QUARANTINED, UNSCRUBBABLE, *FILTERS.names]
    for reason in decision.release:
        if reason not in reasons:
            remedy = "A license can be concluded by `license`; nothing else releases a file."
            raise DecisionError(
                subject, f"release holds {_shown(reason)}", f"reasons among {', '.join(reasons)}", remedy
            )
    if UNSCRUBBABLE in decision.release and decision.sha256 is None:
        remedy = "What was found in a text stays in it: the decision is about these bytes alone."
        raise DecisionError(subject, f"release holds {UNSCRUBBABLE!r} without `sha256`", "the digest of a file", remedy)


def _rule_names() -> set[str]:
    return {rule.id for rules in load_gitleaks_rules().rules_of for rule in rules}


def _shown(word: str) -> str:
    """Return a word for a message: what is no word may be the value of a secret, in the wrong place."""
    return repr(word) if _WORD.fullmatch(word) else "not a word, and not shown, as it may be the value of a secret"
