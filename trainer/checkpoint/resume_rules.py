"""Rules for what may differ when a run is resumed: one list, from which the comparison, its message and the table derive.

A field of the run's identity, of its environment or of its tokenizer that no rule names must be equal: another value is refused.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pipeline.core.errors import TrainingError
from pipeline.core.registry import Registry


class RuleKind(StrEnum):
    """Effect of a resume with another value of a field."""

    ELASTIC = "elastic"
    """It resumes: the bits are the same, and nothing is recorded."""
    FORKING = "forking"
    """It resumes; the numbers fork there, which is recorded."""
    ALLOWABLE = "forking, if allowed"
    """The same, if `--allow-drift FIELD` names the field; else it is refused."""


@dataclass(frozen=True)
class ResumeRule:
    """A field, with all fields below it, that may have another value when a run is resumed."""

    name: str
    kind: RuleKind
    why: str


RESUME_RULES: Registry[ResumeRule] = Registry(
    "resume rule",
    ResumeRule("ranks", RuleKind.ELASTIC, "gradients are added as one tree over the logical micro-batches"),
    ResumeRule("is_sharded", RuleKind.ELASTIC, "a sharded training adds in the same order"),
    ResumeRule(
        "num_workers", RuleKind.ELASTIC, "a batch is a function of its position, whichever process reads it ahead"
    ),
    ResumeRule("has_telemetry", RuleKind.ELASTIC, "metrics are read from a step and change nothing"),
    ResumeRule("evaluation", RuleKind.ELASTIC, "held-out rows change nothing, not even the experts' counters"),
    ResumeRule("config.activation_checkpointing", RuleKind.ELASTIC, "a layer that is run again has the same bits"),
    ResumeRule("config.batch_rows", RuleKind.FORKING, "the data order continues at the same position"),
    ResumeRule("config.micro_batch_rows", RuleKind.FORKING, "the data order continues; sums are split otherwise"),
    ResumeRule("environment", RuleKind.ALLOWABLE, "other versions or processors may round otherwise"),
    ResumeRule("config.attention", RuleKind.ALLOWABLE, "another backend rounds otherwise"),
    ResumeRule("snapshot_id", RuleKind.ALLOWABLE, "other rows are read from the same position on"),
    ResumeRule("mixture", RuleKind.ALLOWABLE, "rows of the snapshots are drawn in other shares"),
    ResumeRule("selection", RuleKind.ALLOWABLE, "other rows are drawn, or in other shares"),
)


def allowable_names() -> list[str]:
    """Return the fields that `--allow-drift` may name, themselves or a field below them."""
    return [rule.name for rule in RESUME_RULES if rule.kind is RuleKind.ALLOWABLE]


def rules_table() -> str:
    """Return the rules as a table of Markdown."""
    rows = [f"| `{rule.name}` | {rule.kind} | {rule.why} |" for rule in RESUME_RULES]
    return "\n".join(["| field | on a resume | why |", "|---|---|---|", *rows, "| every other | refused | |"])


def effects_on_a_resume(names: Collection[str]) -> dict[str, str]:
    """Return of fields of a configuration what another value of each does to a run that is resumed."""
    kinds = {name: _kind_of(f"config.{name}") for name in names}
    return {name: str(kind or "refused") for name, kind in kinds.items()}


def check_resume(
    checkpoint_id: str, before: Mapping[str, Any], now: Mapping[str, Any], allowed: Collection[str]
) -> dict[str, list[Any]]:
    """Return the fields that fork, each with its value before and now. Raises TrainingError naming every one that may not.

    Both sides are the identity of the run, with its `environment` and its `tokenizer`.
    """
    from pipeline.core.params import changed_values  # here, since the command line loads the rules at its start

    for name in allowed:
        if not _is_under(name, allowable_names()):
            expected = f"one of {', '.join(allowable_names())}"
            raise TrainingError(f"--allow-drift {name}", "this field may not differ", expected)
    values = changed_values(before, now)
    kinds = {name: _kind_of(name) for name in values}
    unruled = [name for name, kind in kinds.items() if kind is None]
    drifting = [name for name, kind in kinds.items() if kind is RuleKind.ALLOWABLE and not _is_under(name, allowed)]
    if refused := sorted([*unruled, *drifting]):
        changes = "; ".join(f"{name} was {values[name][0]!r}, is now {values[name][1]!r}" for name in refused)
        options = " ".join(f"--allow-drift {name}" for name in refused)
        remedy = f"Resume it unchanged, or {'start a new run' if unruled else f'allow it by {options}'}."
        if any(_is_under(name, ["initial"]) for name in refused):
            began = before["initial"]["checkpoint_id"] if before.get("initial") else None
            option = f"with --init-from {began[:12]}, or the folder of its export" if began else "without --init-from"
            remedy = f"The run began {option}: resume it so. {remedy}"
        raise TrainingError(
            f"checkpoint {checkpoint_id[:12]}", f"it is of another configuration: {changes}", "", remedy
        )
    return {name: values[name] for name, kind in kinds.items() if kind is not RuleKind.ELASTIC}


def _kind_of(name: str) -> RuleKind | None:
    return next((rule.kind for rule in RESUME_RULES if _is_under(name, [rule.name])), None)


def _is_under(name: str, parents: Collection[str]) -> bool:
    return any(name == parent or name.startswith(f"{parent}.") for parent in parents)
