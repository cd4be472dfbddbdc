"""Mutation: one planted fault, what must go red over it, and the judgment of what did."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.mutations.bench import Bench


class Kind(StrEnum):
    """The place in which a fault is planted."""

    STAGE = "stage code"
    STORED = "stored bytes"
    INPUTS = "inputs"
    PARAMETERS = "parameters"
    TRAINER = "trainer"
    KERNELS = "kernels"
    CERTIFICATE = "certificate"
    CONTROL = "control"
    """Not a fault: a change that must leave everything green."""


class Status(StrEnum):
    """The result of a mutation."""

    KILLED = "killed"
    KILLED_BY_ANOTHER = "killed by another"
    SURVIVED = "survived"
    NOT_PLANTED = "not planted"
    """The code that it alters is no longer there: adapt the mutation."""


@dataclass(frozen=True)
class Mutation:
    """A planted fault. `expected` are patterns of signals, and one of them must go red.

    A signal is `gate:NAME` for a verdict, `canary:NAME`, `promote`, `fsck`, `load`, `compare` and so on for a command that
    refuses, `test:PATH` for a test, and `error:TYPE` or `crash:TYPE` for what a stage raises.
    """

    name: str
    kind: Kind
    planted: str
    expected: tuple[str, ...]
    run: Callable[["Bench"], None]


@dataclass(frozen=True)
class Outcome:
    """A mutation that was run: the signals that went red, and the judgment."""

    name: str
    kind: Kind
    planted: str
    expected: tuple[str, ...]
    red: tuple[str, ...]
    status: Status
    seconds: float

    @property
    def holds(self) -> bool:
        """True for a fault that an expected signal saw, and for a control that none saw."""
        wanted = Status.SURVIVED if self.kind is Kind.CONTROL else Status.KILLED
        return self.status is wanted

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as it is printed and kept."""
        return asdict(self)

    @classmethod
    def of_json(cls, fields: dict[str, Any]) -> "Outcome":
        """Return the outcome that `as_json` described."""
        kind, status = Kind(fields["kind"]), Status(fields["status"])
        lists = {name: tuple(fields[name]) for name in ("expected", "red")}
        return cls(**fields | lists | {"kind": kind, "status": status})


def judge(mutation: Mutation, red: Sequence[str], seconds: float) -> Outcome:
    """Compare what went red with what was expected to."""
    signals = [line.split(" ", 1)[0] for line in red]
    if any(signal == "not-planted" for signal in signals):
        status = Status.NOT_PLANTED
    elif any(fnmatchcase(signal, pattern) for signal in signals for pattern in mutation.expected):
        status = Status.KILLED
    else:
        status = Status.KILLED_BY_ANOTHER if signals else Status.SURVIVED
    fields = (mutation.name, mutation.kind, mutation.planted, mutation.expected)
    return Outcome(*fields, tuple(red), status, round(seconds, 2))
