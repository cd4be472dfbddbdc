"""Counts of canaries, which the gates over them judge: how many were sent of each kind, and how many were missed."""

import json
from collections import Counter

from pipeline.contracts.gates import GATES
from pipeline.contracts.gates_seen import CANARIES
from pipeline.contracts.part import PartJob, PartOutput
from pipeline.contracts.stage_report import StageReport

KINDS = ("file", "archive", "offense")


def measure_canaries(job: PartJob, output: PartOutput) -> StageReport:
    """Return how many canaries were missed, and how many were sent of the kind of which there are the fewest.

    A kind of which one was not sent, as None says, counts as none.
    """
    caught = json.loads(output.files[CANARIES])
    sent = Counter(map(_kind, caught))
    for kind in {_kind(name) for name, seen in caught.items() if seen is None}:
        del sent[kind]
    num_missed = sum(seen is not True for seen in caught.values())
    measures = {"num_canaries": min(sent[kind] for kind in KINDS), "num_canaries_missed": num_missed}
    return StageReport(len(caught), len(caught), measures=measures)


def _kind(name: str) -> str:
    """Return the kind of a canary by its name: GATE/OFFENSE, SOURCE/PATH of a file, or that of an archive."""
    first, divided, _ = name.partition("/")
    return ("offense" if first in GATES else "file") if divided else "archive"
