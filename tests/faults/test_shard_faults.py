"""A disk that is full and a worker that is killed within a shard: a sentence, and no other shard is made again.

`make campaign` does this in each kind of part, with an archive cut off, little memory, and kills at twenty points.
"""

from pathlib import Path

import pytest

from tests.tools.shard_campaign.campaign_cases import SHARDED, Campaign
from tests.tools.shard_campaign.faulty_runs import is_sentence


@pytest.mark.slow  # three builds, two with workers
def test_a_full_disk_and_a_killed_worker_cost_no_more_than_a_shard_a_worker(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, 120_000, 30_000, "enrich", num_workers=1)
    runs = campaign.runs("faulty")
    full = runs.run("disk", "clean_source")
    earlier = runs.noted()
    killed = runs.run("kill", "enrich_source")

    assert full.code == 1
    assert is_sentence(full.said, "File too large") == ""
    assert killed.code == 0, killed.said
    assert len(campaign.straight.shard_ids()["collect"]) > 3
    assert runs.shard_ids() == campaign.straight.shard_ids()
    assert runs.damage == []
    again = [name for name in killed.began if name in earlier and name[0] in SHARDED]
    assert 1 <= len(again) <= runs.num_workers
    enriched = [number for (function, _), number in killed.began.items() if function == "enrich_source"]
    assert sum(number - 1 for number in enriched) <= runs.num_workers
