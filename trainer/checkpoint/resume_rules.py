"""What a resume may find changed. Every field is one of three kinds.

elastic    ranks, whether parameters are sharded over them, accumulation at one logical micro-batch, loader workers, prefetch:
           the same bits, and stored nowhere
forking    batch size and logical micro-batch: the data order goes on, the numbers fork, and that is recorded.
           The kernel manifest, the way of attention, the data snapshot and the mixture too, where `--allow-drift FIELD` names them
identity   everything else, the tokenizer too whatever snapshot is allowed: another value is refused, naming the field and
           both values
"""

from collections.abc import Collection, Mapping
from typing import Any

from pipeline.core.errors import TrainingError
from pipeline.core.params import flat

FORKING = ("config.batch_rows", "config.micro_batch_rows")
ALLOWABLE = ("manifest", "snapshot_id", "mixture", "config.attention")


def judge_drift(
    checkpoint_id: str, found: Mapping[str, Any], wanted: Mapping[str, Any], allowed: Collection[str]
) -> dict[str, list[Any]]:
    """The fields that fork, each with its value before and now. Raises TrainingError naming every one that may not.

    `found` and `wanted` are the identity, with the kernel manifest under `manifest`, and the `tokenizer`. An allowed name stands
    for all under it.
    """
    for name in allowed:
        if not _is_under(name, ALLOWABLE):
            raise TrainingError(f"--allow-drift {name}", "no such drift can be allowed", f"{', '.join(ALLOWABLE)}")
    before, after = flat(found), flat(wanted)
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    refused = [name for name in names if name not in FORKING and not _is_under(name, allowed)]
    if refused:
        changes = "; ".join(f"{name} was {before.get(name)!r}, is now {after.get(name)!r}" for name in refused)
        can = [name for name in refused if _is_under(name, ALLOWABLE)]
        remedy = f"Resume it as it was, or allow the drift by {' '.join(f'--allow-drift {name}' for name in can)}."
        raise TrainingError(
            f"checkpoint {checkpoint_id[:12]}",
            f"it is of another configuration: {changes}",
            "",
            remedy if can == refused else "Resume it as it was, or start a new run.",
        )
    return {name: [before.get(name), after.get(name)] for name in names}


def _is_under(name: str, parents: Collection[str]) -> bool:
    return any(name == parent or name.startswith(f"{parent}.") for parent in parents)
