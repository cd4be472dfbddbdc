"""`python -m tests.benchmarks [NAME ...] [--json] [--write FILE]`: measure, print one object a figure, write the page.

`python -m tests.benchmarks cluster-plan` prints what follows for a cluster from the page.
"""

import argparse
import json
import re
import sys
from pathlib import Path

from tests.benchmarks.assets.loading import definitions
from tests.benchmarks.assets.nights import nights
from tests.benchmarks.assets.reach import overrides
from tests.benchmarks.cluster.cluster_plan import print_plan
from tests.benchmarks.cluster.postgres_runs import postgres
from tests.benchmarks.cluster.slopes import requests, slopes
from tests.benchmarks.figure import NOT_MEASURED, Benchmark, Figure, machine
from tests.benchmarks.pipeline.canary_cost import canaries
from tests.benchmarks.pipeline.cleaning import collect_normalize_full, one_more_source
from tests.benchmarks.pipeline.drawn_origins import which
from tests.benchmarks.pipeline.duplicates.near_duplicates import million_documents, near_duplicates
from tests.benchmarks.pipeline.duplicates.signatures import signatures
from tests.benchmarks.pipeline.end_to_end import dagster_overhead, end_to_end_full, end_to_end_quick
from tests.benchmarks.pipeline.large_sources.one_source import growth, many_sources, one_changed_file, one_source
from tests.benchmarks.pipeline.large_sources.sharded_duplicates import sharded_duplicates
from tests.benchmarks.pipeline.promotion_verify import promote_verify
from tests.benchmarks.pipeline.same_blocks import same_blocks
from tests.benchmarks.pipeline.secret_scan import secrets
from tests.benchmarks.pipeline.structure import chunks, compiler_index, error_bytes, syntax
from tests.benchmarks.pipeline.writing import encode, packing
from tests.benchmarks.store.bucket_requests import store_requests
from tests.benchmarks.store.bundle_speed import bundle
from tests.benchmarks.store.gc_beside import gc_beside
from tests.benchmarks.store.log_damages import logs
from tests.benchmarks.store.planted_faults import planted_faults
from tests.benchmarks.store.planted_history import history
from tests.benchmarks.trainer.bucket_reading import cold_read
from tests.benchmarks.trainer.checkpoint_costs import (
    checkpoint_sharing,
    checkpoint_size,
    determinism_cost,
    save_stall,
    state_digest,
)
from tests.benchmarks.trainer.chunked_loss import loss
from tests.benchmarks.trainer.drawn_shares import shares
from tests.benchmarks.trainer.expert_padding import expert_padding
from tests.benchmarks.trainer.graphs import graph
from tests.benchmarks.trainer.kills import kill_campaign
from tests.benchmarks.trainer.memory_figures import memory_plan
from tests.benchmarks.trainer.on_gpu import section, without_section
from tests.benchmarks.trainer.reading import loader, loader_memory, resume_position
from tests.benchmarks.trainer.withdrawal_reach import withdraw_reach

BENCHMARKS: dict[str, Benchmark] = {
    "end-to-end-quick": end_to_end_quick,
    "end-to-end-full": end_to_end_full,
    "dagster-overhead": dagster_overhead,
    "definitions": definitions,
    "nights": nights,
    "overrides": overrides,
    "canaries": canaries,
    "promote-verify": promote_verify,
    "which": which,
    "history": history,
    "collect-normalize-full": collect_normalize_full,
    "same-blocks": same_blocks,
    "one-more-source": one_more_source,
    "one-source": one_source,
    "growth": growth,
    "one-changed-file": one_changed_file,
    "many-sources": many_sources,
    "slopes": slopes,
    "requests": requests,
    "postgres": postgres,
    "secrets": secrets,
    "signature": signatures,
    "near-duplicates": near_duplicates,
    "million-documents": million_documents,
    "sharded-duplicates": sharded_duplicates,
    "syntax": syntax,
    "chunks": chunks,
    "error-bytes": error_bytes,
    "compiler": compiler_index,
    "encode": encode,
    "packing": packing,
    "loader": loader,
    "resume-position": resume_position,
    "loader-memory": loader_memory,
    "cold-read": cold_read,
    "shares": shares,
    "save-stall": save_stall,
    "memory-plan": memory_plan,
    "state-digest": state_digest,
    "checkpoint-size": checkpoint_size,
    "checkpoint-sharing": checkpoint_sharing,
    "determinism-cost": determinism_cost,
    "kill-campaign": kill_campaign,
    "bundle": bundle,
    "gc-beside": gc_beside,
    "logs": logs,
    "store-requests": store_requests,
    "mutations": planted_faults,
    "withdraw-reach": withdraw_reach,
    "loss": loss,
    "expert-padding": expert_padding,
    "graph": graph,
}

PLAN = "cluster-plan"
HEAD = """# Benchmarks

Made by `make bench`; do not edit. Peers are measured in the same run, in turn; single times on shared machines mean little,
ratios more. `make peers` installs them; without its peer a row is "not measured".

Machine of the newest run: {machine}; rows that it did not measure are of an earlier one.

| figure | value | unit | to reach | holds | beside | its value | ratio |
|---|---|---|---|---|---|---|---|
"""


def main() -> int:
    """Measure; exit 1 if a figure misses what it was to reach. One that is not measured neither holds nor misses."""
    if sys.argv[1:2] == [PLAN]:
        return print_plan(sys.argv[2:])
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", epilog=f"{PLAN} --help: a plan by measured slopes"
    )
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(BENCHMARKS)}; all unless given")
    parser.add_argument("--json", action="store_true", help="one JSON object a line on stdout")
    parser.add_argument("--write", type=Path, help="write the page here; rows of what is not measured stay")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - BENCHMARKS.keys())
    if unknown:
        parser.error(f"no figure {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    figures: list[Figure] = []
    for name in options.names or BENCHMARKS:
        for figure in BENCHMARKS[name]():
            figures.append(figure)
            if options.json:
                print(json.dumps(figure.as_json()), flush=True)
            print(f"{figure.name}: {_verdict(figure)}, {figure.value} {figure.unit} ({figure.reach})", file=sys.stderr)
        if options.write:  # after each, so that a run that is stopped leaves what it measured
            options.write.write_text(page(options.write, figures))
    return int(any(figure.holds is False for figure in figures))


def page(path: Path, figures: list[Figure]) -> str:
    """The page with these figures; rows of benchmarks that this run did not measure stay as they are."""
    measured = {_benchmark_of(figure.name) for figure in figures}
    before = without_section(path.read_text()).splitlines(keepends=True) if path.exists() else []
    names = {line: _benchmark_of(line.removeprefix("| ")) for line in before if line.startswith("| ")}
    rows = [line for line, name in names.items() if name in BENCHMARKS and name not in measured]
    rows += [_row(figure) for figure in figures]
    order = list(BENCHMARKS)
    rows.sort(key=lambda row: order.index(_benchmark_of(row.removeprefix("| "))))
    missing = [name for name in order if name not in {_benchmark_of(row.removeprefix("| ")) for row in rows}]
    left = f"\nNot yet measured: {', '.join(f'`{name}`' for name in missing)}.\n" if missing else ""
    return HEAD.format(machine=machine()) + "".join(rows) + left + section()


def _benchmark_of(name: str) -> str:
    return re.split(r"[/,| ]", name, maxsplit=1)[0]


def _verdict(figure: Figure) -> str:
    return NOT_MEASURED if figure.holds is None else "yes" if figure.holds else "**no**"


def _row(figure: Figure) -> str:
    cells = (
        figure.name,
        figure.value,
        figure.unit,
        figure.reach,
        _verdict(figure),
        figure.peer,
        figure.peer_value,
    )
    return "| " + " | ".join("" if cell is None else str(cell) for cell in (*cells, figure.ratio)) + " |\n"


if __name__ == "__main__":
    sys.exit(main())
