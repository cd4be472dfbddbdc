"""Proofs that read only some rows miss offenses about rows."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.build.canaries.canaries import send_offense, sound_build
from pipeline.build.canaries.offenses import OFFENSES
from pipeline.build.recipes import TINY
from pipeline.stages.verify import stage


@pytest.mark.parametrize(
    "judged", [slice(None, 1), slice(-1, None), slice(None, -1)], ids=["first", "last", "but last"]
)
@pytest.mark.parametrize(
    ("gate", "count", "at"),
    [
        ("rows_respect_their_boundaries", "count_boundary_mismatches", 0),
        ("commits_are_in_order", "count_commit_order_violations", 1),
        ("fractions_are_the_tokens_own", "count_fractions_that_differ", 1),
    ],
)
def test_a_proof_of_some_rows_alone_is_found(
    gate: str, count: str, at: int, judged: slice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: Callable[..., int] = getattr(stage, count)

    def of_some(*given: object) -> int:
        rows = given[at]
        assert isinstance(rows, pa.Table)
        first, end, _ = judged.indices(rows.num_rows)
        return whole(*given[:at], rows.slice(first, max(0, end - first)), *given[at + 1 :])

    monkeypatch.setattr(stage, count, of_some)
    build = sound_build(tmp_path / "sources", TINY.params)
    verdicts = build.run()
    sent = [offense for offense in OFFENSES if gate in offense.gates]

    assert [offense.name for offense in sent if send_offense(offense, build, verdicts)[gate]] == []
