"""Blocks of datatrove over FOLDER/measured/texts/*.jsonl: `datatrove_blocks.py FOLDER` prints seconds by block.

Run by an interpreter that has datatrove and nothing of ours: personal data, then MinHash in its four steps. All of it runs over
FOLDER/warm first, so that what it loads at its first text is not measured.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any


def main() -> int:
    """Run the blocks one after the other in this process."""
    run(Path(sys.argv[1]) / "warm")
    print(json.dumps(run(Path(sys.argv[1]) / "measured")))
    return 0


def run(root: Path) -> dict[str, float]:
    """Return seconds of processor time by block."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.pipeline.formatters import PIIFormatter
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter

    config = MinhashConfig(num_buckets=32, hashes_per_bucket=8)
    scrubbed, made = str(root / "scrubbed"), {name: str(root / name) for name in ("signatures", "buckets", "remove")}
    blocks: dict[str, list[list[Any]]] = {
        "personal data": [[JsonlReader(str(root / "texts")), PIIFormatter(), JsonlWriter(scrubbed)]],
        "minhash": [
            [JsonlReader(scrubbed), MinhashDedupSignature(made["signatures"], config)],
            [MinhashDedupBuckets(made["signatures"], made["buckets"], config=config)],
            [MinhashDedupCluster(made["buckets"], made["remove"], config=config)],
            [JsonlReader(scrubbed), MinhashDedupFilter(made["remove"]), JsonlWriter(str(root / "kept"))],
        ],
    }
    seconds = {}
    for name, steps in blocks.items():
        started = time.process_time()
        for index, step in enumerate(steps):
            folder = str(root / "logs" / f"{name}-{index}")
            tasks = config.num_buckets if isinstance(step[0], MinhashDedupBuckets) else 1
            LocalPipelineExecutor(pipeline=step, tasks=tasks, workers=1, logging_dir=folder).run()
        seconds[name] = time.process_time() - started
    return seconds


if __name__ == "__main__":
    sys.exit(main())
