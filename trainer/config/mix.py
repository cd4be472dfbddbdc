"""MixArguments: what `--mix` gives, weights of snapshots or shares of one snapshot's rows."""

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.core.errors import ParamsError
from pipeline.core.records import Provenance

LANES = frozenset(map(str, Provenance))
"""Names of lanes: the provenance of a document."""


class MixArguments(NamedTuple):
    """Arguments of `--mix`: those that name snapshots, and the one that gives shares of one snapshot's rows."""

    snapshots: tuple[str, ...]
    shares: str | None


def divide_mix(mix: Sequence[str]) -> MixArguments:
    """Return weights of snapshots apart from shares of rows, which have a comma, a dimension or a lane.

    Raises ParamsError for both, or for shares twice.
    """
    shares = [each for each in mix if _is_of_rows(each)]
    if len(shares) > 1 or (shares and len(shares) < len(mix)):
        found = f"{len(mix)} of them are given, and {shares[0]} gives shares of rows"
        raise ParamsError("--mix", found, "that one alone", "Shares are of one snapshot, by one dimension.")
    return MixArguments(() if shares else tuple(mix), shares[0] if shares else None)


def _is_of_rows(argument: str) -> bool:
    return "," in argument or ":" in argument or argument.partition("=")[0] in LANES
