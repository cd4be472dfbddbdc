"""kill -9 at random moments and at the worst ones: the certificate is always that of a run that was not killed.

SLUICE_KILLS says how many (10; `make campaign` 200).
"""

import os
from pathlib import Path

import pytest

from pipeline.store.store import Store
from tests.tools.campaign import run_campaign

NUM_KILLS = int(os.environ.get("SLUICE_KILLS", "10"))


@pytest.mark.slow  # a training of 60 steps, started again after each kill
def test_a_run_that_is_killed_again_and_again_ends_in_the_same_certificate(tiny_store: Store, tmp_path: Path) -> None:
    found = run_campaign(tiny_store, tiny_store.ref("tiny", "live") or "", tmp_path, NUM_KILLS)

    assert found.num_kills == NUM_KILLS
    assert len(found.moments) >= min(4, NUM_KILLS)
    assert found.differences == []
    assert found.damage == []
