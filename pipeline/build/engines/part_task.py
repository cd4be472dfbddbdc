"""Part task: how one part is made, wherever that is; a part function's inputs are read, its output is written into a folder."""

import ctypes
import gc
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pipeline.contracts.part import MEMORY_REMEDY, Part, PartJob, PartOutput
from pipeline.contracts.stage_report import StageReport
from pipeline.core.command_line import describe_defect
from pipeline.core.declared import load_declared
from pipeline.core.durable import sync, write_synced
from pipeline.core.errors import SluiceError, SourceError, StageError
from pipeline.core.params import canonical_json
from pipeline.formats.tables import write_table, write_tables
from pipeline.store.objects import REPORT, read_manifest
from pipeline.store.store import Store


@dataclass(frozen=True)
class PartTask:
    """A part to make: where its inputs are read and into which empty folder its files are written."""

    part: Part
    function: str
    """The part function as `package.module:function`: workers import it, and no identity holds it."""
    store_root: Path
    folder: Path
    measure: str | None = None
    """The measure function of its kind, named in the same way."""
    is_of_source: bool = False
    """One part of many of its kind: whatever it does, the others go on."""
    waits: bool = False
    """Another program does the work, and this process waits for it."""


PartResult = StageReport | SourceError
_NUM_NEW_OBJECTS = 50_000
"""Objects after which Python searches new ones for cycles: a part makes millions that stay, and hardly a cycle."""


def make_part(task: PartTask) -> PartResult:
    """Run one part function and write its files into the task's folder. A SourceError is a result: other sources continue."""
    before = gc.get_threshold()
    gc.set_threshold(_NUM_NEW_OBJECTS)
    try:
        return _made(task)
    finally:
        gc.set_threshold(*before)
        _return_memory()


def _made(task: PartTask) -> PartResult:
    part, store = task.part, Store(task.store_root)
    inputs = {label: store.read(object_id) for label, object_id in part.inputs.items()}
    job = PartJob(part.name, part.params, inputs, part.identity, part.places)
    try:
        output = measured(job, load_declared(f"part {part.name}", "function", task.function)(job), task.measure)
    except SourceError as error:
        return error
    except (SluiceError, OSError):
        raise
    except Exception as error:
        if not task.is_of_source:
            raise
        return _defect(part, error)
    write_output(task.folder, output)
    return output.report


def _return_memory() -> None:
    """Give the system back what a part has freed: allocators keep it, and a worker makes many parts of many sizes."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:  # of the GNU library alone
        trim(0)


def _defect(part: Part, error: Exception) -> SourceError:
    """Return the error of a source at which the code of a stage broke: a defect, or memory that it lacked."""
    if isinstance(error, MemoryError):
        return SourceError(part.name, f"{part.function}: out of memory", "", _LEAVE_OUT)
    found = f"{part.function} raised {describe_defect(error)}"
    remedy = "Report it with that line; `exclude` the file in the pin, or leave the source out."
    return SourceError(part.name, found, "", remedy)


def measured(job: PartJob, output: PartOutput, measure: str | None) -> PartOutput:
    """Return a part's output with the report that the measure function of its kind makes of it."""
    if measure is None:
        return output
    return replace(output, report=load_declared(f"part {job.name}", "measure", measure)(job, output))


def write_output(folder: Path, output: PartOutput) -> None:
    """Write the tables, the small files and the report of a part into its folder, synced."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in sorted(output.tables.items()):
        for shard in write_table(folder, name, table):
            sync(folder / shard)
    for name, tables in sorted(output.streams.items()):
        for shard in write_tables(folder, name, tables):
            sync(folder / shard)
    for name, content in sorted(output.files.items()):
        write_synced(folder / name, content)
    write_synced(folder / REPORT, canonical_json(asdict(output.report)))


def ended_error(task: PartTask, found: str) -> SourceError:
    """Return the error of a part of a source that its worker did not survive. Raises StageError for another part."""
    if task.is_of_source:
        return SourceError(task.part.name, f"{task.part.function}: {found}", "", _LEAVE_OUT)
    raise StageError(task.part.name, found, "", MEMORY_REMEDY)


def num_bytes_read(task: PartTask) -> int:
    """Add up the bytes of the objects and single files that a part is made from, as far as they are known beforehand."""
    store = Store(task.store_root)
    folders = filter(None, map(store.locate, task.part.inputs.values()))
    num_bytes = sum(entry.num_bytes for folder in folders for entry in read_manifest(folder).files)
    return num_bytes + sum(path.stat().st_size for path in task.part.places.values() if path.is_file())


def largest_first(tasks: Iterable[PartTask]) -> list[PartTask]:
    """Sort tasks by what they read: otherwise one worker finishes the largest last while the others wait."""
    return sorted(tasks, key=lambda task: (-num_bytes_read(task), task.part.name))


_LEAVE_OUT = "Run again with fewer workers; if it ends so again, leave the source out, or `exclude` what is odd in it."
