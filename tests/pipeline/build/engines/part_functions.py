"""Part functions that end well, refuse, break, hang or kill their worker, and the tasks of four parts of one of them."""

import os
import signal
import threading
import time
from pathlib import Path

import pyarrow as pa

from pipeline.build.engines.part_task import PartTask
from pipeline.contracts.part import Part, PartJob, PartOutput
from pipeline.contracts.stage_report import StageReport
from pipeline.core.errors import SourceError
from pipeline.core.params import Params
from pipeline.store.store import Store

kept: list[bytearray] = []
_three = threading.Barrier(3)


def number(job: PartJob) -> PartOutput:
    table = pa.table({"number": [job.identity["number"]] * 3})
    return PartOutput({"numbers.parquet": table}, StageReport(3, 3), {"note.txt": b"note"})


def refuse(job: PartJob) -> PartOutput:
    if job.identity["number"] == 1:
        raise SourceError("source one", "it is broken", "a sound one", "Repair it.")
    return number(job)


def die(job: PartJob) -> PartOutput:
    os.kill(os.getpid(), signal.SIGKILL)
    return number(job)


def die_at_one(job: PartJob) -> PartOutput:
    return (die if job.identity["number"] == 1 else number)(job)


def hang_at_one(job: PartJob) -> PartOutput:
    return (hang if job.identity["number"] == 1 else number)(job)


def break_at_one(job: PartJob) -> PartOutput:
    if job.identity["number"] == 1:
        raise IndexError("beyond the end")
    return number(job)


def lack_memory(job: PartJob) -> PartOutput:
    raise MemoryError


def fill_memory(job: PartJob) -> PartOutput:
    """Fill 200 MB in pieces that the allocator of C keeps when they are gone, as the last of them stays."""
    pieces = [bytearray(100_000) for _ in range(2_000)]
    kept.append(pieces[-1])
    return number(job)


def hang(job: PartJob) -> PartOutput:
    """Hang for 30 seconds, once a file of the part's number is in the folder that BEGAN names."""
    if folder := os.environ.get("BEGAN"):
        Path(folder, str(job.identity["number"])).touch()
    time.sleep(30)
    return number(job)


def meet(job: PartJob) -> PartOutput:
    """Wait for two more threads of this process that make a part."""
    _three.wait(10)
    return number(job)


def tasks(store: Store, function: str, count: int = 4) -> list[PartTask]:
    parts = [Part(str(n), f"{__name__}:{function}", Params(), identity={"number": n}) for n in range(count)]
    return [PartTask(part, part.function, store.root, store.root / "tmp" / part.name) for part in parts]


def bytes_written(store: Store) -> dict[str, bytes]:
    return {
        str(path.relative_to(store.root)): path.read_bytes() for path in sorted(store.root.rglob("*")) if path.is_file()
    }
