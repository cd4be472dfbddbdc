"""Kills at random moments and at the worst ones: the certificate is always that of a run that was not killed.

SLUICE_KILLS says how many (5; `make campaign` 200).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.store.store import Store
from tests.tools.kill_campaign import run_campaign

NUM_KILLS = int(os.environ.get("SLUICE_KILLS", "5"))


@pytest.mark.slow  # a training of 60 steps, started again after each kill
def test_a_run_that_is_killed_again_and_again_ends_in_the_same_certificate(tiny_store: Store, tmp_path: Path) -> None:
    found = run_campaign(tiny_store, tiny_store.ref("tiny", "live") or "", tmp_path, NUM_KILLS)

    assert found.num_kills == NUM_KILLS
    assert len(found.moments) >= min(4, NUM_KILLS)
    assert found.differences == []
    assert found.damage == []


@pytest.mark.slow  # two ranks, started anew for each kill
def test_a_checkpoint_that_two_ranks_write_is_whole_or_absent_wherever_one_is_killed(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "tests.tools.sharding.shared_saves", str(tmp_path), "7"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    outcomes = json.loads(done.stdout)

    assert {each["killed"] for each in outcomes} == {0, 1}
    assert {each["latest"] for each in outcomes} == {1, 2}
    for each in outcomes:
        assert each["codes"][each["killed"]] == -9
        assert all(each["sound"]), each
        assert each["again"] == [0, 0], each
        assert each["at_last"] == {"sound": [True, True], "latest": 2}
