"""`python -m tests.tools.shard_campaign [CASE …]`: run all cases, or those that are named.

The source has 20 MB, or SLUICE_CAMPAIGN_BYTES, and a shard a twentieth of it.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.tools.shard_campaign import campaign_cases as cases

CASES: dict[str, Callable[[cases.Campaign], cases.Found]] = {
    "workers": cases.number_of_workers,
    "order": cases.order_of_reading,
    "large": cases.one_file_larger_than_a_shard,
    "cut": cases.cut_off_in_the_last_shard,
    "killed": cases.worker_killed_in_each_kind_of_part,
    "killed-by-groups": partial(cases.worker_killed_in_each_kind_of_part, by_groups=True),
    "no-disk": cases.disk_full_in_each_kind_of_part,
    "no-disk-by-groups": partial(cases.disk_full_in_each_kind_of_part, by_groups=True),
    "disk": cases.disk_that_fills,
    "memory": cases.little_memory,
    "points": cases.killed_at_points,
}


def main(names: list[str]) -> int:
    """Print what each case measured and what was wrong; 1 if anything was."""
    num_bytes, num_wrong = int(os.environ.get("SLUICE_CAMPAIGN_BYTES", "20000000")), 0
    with tempfile.TemporaryDirectory() as folder:
        campaign = cases.Campaign(Path(folder) / "campaign", num_bytes, num_bytes // 20)
        for name in names or CASES:
            started = time.monotonic()
            found = CASES[name](campaign)
            print(f"{name}: {'; '.join(found.measured)} ({time.monotonic() - started:.0f} s)", flush=True)
            print(*(f"  WRONG: {each}" for each in found.wrong), sep="\n", end="\n" if found.wrong else "", flush=True)
            num_wrong += len(found.wrong)
    print(f"{num_wrong} wrong")
    return 1 if num_wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
