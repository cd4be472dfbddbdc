"""GatesSeen: the gates that a build has seen red, by which offenses, and with which code."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.contracts.gates import GATES

CANARIES, GATES_SEEN = "canaries.json", "gates.json"
"""Files of the canaries' part: whether each canary was caught, and the GatesSeen."""


@dataclass(frozen=True)
class GatesSeen:
    """The offenses that turned each gate red, by the name of the gate, and the digest of the code that judged them."""

    code: str
    gates: Mapping[str, Sequence[str]]

    def missing(self) -> tuple[str, ...]:
        """Return the gates that no offense turned red."""
        return tuple(gate.name for gate in GATES if not self.gates.get(gate.name))
