"""Program `faulty_build ARGUMENTS`: `python -m pipeline ARGUMENTS`, each of whose parts is made by a faulty function."""

import os
import sys
from dataclasses import replace
from typing import Any

from pipeline.build.build_context import BuildContext
from pipeline.build.engines import local_engine
from pipeline.cli.main import main
from pipeline.core.command_line import end_process
from pipeline.stages.normalize import stage as normalize
from tests.tools.shard_campaign.faulty_parts import faulty_name

AT_ONCE = "SLUICE_CAMPAIGN_AT_ONCE"
"""Variable: the number of documents above which copies are searched by groups, as in a large corpus."""


def inject_faults() -> None:
    """Send workers the names of faulty functions from now on."""
    task = BuildContext.task

    def faulty_task(context: BuildContext, part: Any) -> Any:
        found = task(context, part)
        return replace(found, function=faulty_name(found.function))

    normalize.MAX_NUM_AT_ONCE = int(os.environ.get(AT_ONCE, normalize.MAX_NUM_AT_ONCE))
    local_engine.MAX_NUM_BYTES_AT_STAKE = 0  # shards of a campaign are small, and are to be made as large ones are
    BuildContext.task = faulty_task  # type: ignore[method-assign]


if __name__ == "__main__":
    inject_faults()
    end_process(main(sys.argv[1:]))
