"""Gates as they were last seen red: by which offenses, in which build, with which code, and when."""

from dataclasses import dataclass

from pipeline.build.stage_objects import parts_of
from pipeline.contracts.gates import GATES
from pipeline.contracts.gates_seen import GATES_SEEN, GatesSeen
from pipeline.store.store import Store

CANARIES_PART = "canaries"


@dataclass(frozen=True)
class GateSeenRed:
    """A gate and the build that saw it red: the id of its verify stage, the digest of the code, and the time of its verdicts."""

    gate: str
    stage: str
    offenses: tuple[str, ...]
    """The offenses that turned it red; none where it never was."""
    build: str
    code: str
    when: str


def seen_red(store: Store, verify_id: str | None) -> tuple[GateSeenRed, ...]:
    """Return how each gate was seen by the build that made a verify stage. Empty for None, and for a build without canaries.

    The canaries of that build are read, and none is sent. An old time is no error.
    """
    part = parts_of(store.read(verify_id)).get(CANARIES_PART) if verify_id is not None else None
    if verify_id is None or part is None:
        return ()
    found = GatesSeen(**store.read(part).json(GATES_SEEN))
    when = (store.verdicts(verify_id) or {"when": ""})["when"]
    return tuple(
        GateSeenRed(gate.name, gate.stage, tuple(found.gates.get(gate.name, ())), verify_id, found.code, when)
        for gate in GATES
    )
