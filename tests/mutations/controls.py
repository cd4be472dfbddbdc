"""Controls: changes that are no fault. Each must leave everything green: what turns red over one of them is a false alarm."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from pipeline.contracts.gates import GATES
from tests.mutations import plant
from tests.mutations.bench import Bench
from tests.mutations.mutation import Kind, Mutation


def mutations() -> Iterator[Mutation]:
    """Return the controls."""
    for name, (planted, change) in CONTROLS.items():
        yield Mutation(f"control/{name}", Kind.CONTROL, planted, (), partial(_run, change))


def _run(change: Callable[[Bench], None], bench: Bench) -> None:
    change(bench)
    snapshot_id = bench.build()
    if snapshot_id != bench.live_id:
        bench.say("snapshot", f"its id is {snapshot_id}, not {bench.live_id}")
    bench.fsck()


def _nothing(bench: Bench) -> None:
    """Change nothing."""


def _all_anew(bench: Bench) -> None:
    bench.since = "collect"


def _workers(bench: Bench) -> None:
    bench.since, bench.num_workers = "collect", 2


def _extra_measure(bench: Bench) -> None:
    plant.alter_stage(
        "verify",
        lambda output: replace(
            output, report=replace(output.report, measures={**output.report.measures, "num_extra": 7.0})
        ),
    )


def _sorted_again(bench: Bench) -> None:
    bench.since = "normalize"
    plant.alter_tables(
        "normalize",
        "clean",
        lambda tables: tables | {"documents.parquet": tables["documents.parquet"].sort_by("path")},
    )


def _pins_in_another_order(bench: Bench) -> None:
    bench.since = "collect"
    bench.pins = bench.pins[::-1]


def _other_words(bench: Bench) -> None:
    for gate in GATES:
        object.__setattr__(gate, "why", f"{gate.why} Indeed.")


def _times_of_files(bench: Bench) -> None:
    for path in bench.store.root.glob("objects/**/*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))


def _moved_store(bench: Bench) -> None:
    moved = bench.folder / "elsewhere"
    bench.store.root.rename(moved)
    bench.store = type(bench.store)(Path(moved))


def _leftover(bench: Bench) -> None:
    folder = bench.store.root / "tmp" / "killed"
    folder.mkdir(parents=True)
    (folder / "half.parquet").write_bytes(b"half")
    (bench.store.root / "refs" / "tiny" / ".live.tmp").write_bytes(b"")


def _renamed_variable(bench: Bench) -> None:
    """Compile a function again with another name of a local variable."""
    import inspect
    import textwrap

    from pipeline.stages.verify import tokens

    source = textwrap.dedent(inspect.getsource(tokens.count_special_ids)).replace("special_ids", "control_ids")
    made: dict[str, object] = {}
    exec(source.replace("def count_control_ids", "def count_special_ids"), vars(tokens), made)
    plant.wrap("pipeline.stages.verify.tokens:count_special_ids", lambda _: made["count_special_ids"])


CONTROLS: dict[str, tuple[str, Callable[[Bench], None]]] = {
    "nothing": ("nothing at all", _nothing),
    "all-anew": ("every part made anew", _all_anew),
    "more-workers": ("every part made anew by two processes", _workers),
    "extra-measure": ("verify reports a measure that no gate reads", _extra_measure),
    "sorted-again": ("documents that are sorted are sorted once more", _sorted_again),
    "order-of-pins": ("the pins in the opposite order", _pins_in_another_order),
    "other-words": ("other words for why each gate is there", _other_words),
    "times-of-files": ("other times of the files of the store", _times_of_files),
    "moved-store": ("the store in another folder", _moved_store),
    "leftovers": ("what a killed build and a killed move of a ref leave", _leftover),
    "renamed-variable": ("a local variable of a proof with another name", _renamed_variable),
}
