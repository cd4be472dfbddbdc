"""Parts come out the same from any number of workers; a worker that dies, hangs or loses its parent harms nothing else."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.build.engine import Engine, PartTask, StageWork, write_output
from pipeline.contracts.part import Part, PartJob, PartOutput
from pipeline.contracts.stage_report import StageReport
from pipeline.core.errors import SourceError, StageError
from pipeline.core.params import Params
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store


def number(job: PartJob) -> PartOutput:
    table = pa.table({"number": [job.identity["number"]] * 3})
    return PartOutput({"numbers.parquet": table}, StageReport(3, 3), {"note.txt": b"note"})


def refuse(job: PartJob) -> PartOutput:
    if job.identity["number"] == 1:
        raise SourceError("source one", "it is broken", "a sound one", "Mend it.")
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


def hang(job: PartJob) -> PartOutput:
    time.sleep(30)
    return number(job)


def tasks(store: Store, function: str, count: int = 4) -> list[PartTask]:
    parts = [Part(str(n), f"{__name__}:{function}", Params(), identity={"number": n}) for n in range(count)]
    return [PartTask(part, part.function, store.root, store.root / "tmp" / part.name) for part in parts]


def bytes_written(store: Store) -> dict[str, bytes]:
    return {
        str(path.relative_to(store.root)): path.read_bytes() for path in sorted(store.root.rglob("*")) if path.is_file()
    }


def test_one_worker_and_two_write_the_same_bytes(tmp_path: Path) -> None:
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    with Engine(1) as engine:
        list(engine.run(tasks(one, "number")))
    with Engine(2) as engine:
        list(engine.run(tasks(two, "number")))

    assert bytes_written(one) == bytes_written(two)
    assert len(bytes_written(one)) == 4 * 3


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_source_that_fails_is_a_result_and_the_others_continue(store: Store, num_workers: int) -> None:
    with Engine(num_workers) as engine:
        results = {task.part.name: result for task, result in engine.run(tasks(store, "refuse"))}

    assert isinstance(results.pop("1"), SourceError)
    assert all(isinstance(result, StageReport) for result in results.values())
    assert len(results) == 3


def test_a_part_that_ends_its_worker_fails_its_source_alone(store: Store) -> None:
    for end, found in (("die_at_one", "its worker process died"), ("hang_at_one", "no part was finished within 2 s")):
        with Engine(2, deadline_seconds=2.0) as engine:
            made = [replace(task, is_of_source=True) for task in tasks(store, end)]
            results = {task.part.name: result for task, result in engine.run(made)}

        assert found in str(results.pop("1"))
        assert [isinstance(result, StageReport) for result in results.values()] == [True] * 3


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_defect_fails_its_source_and_names_the_line(store: Store, num_workers: int) -> None:
    with Engine(num_workers) as engine:
        made = [replace(task, is_of_source=True) for task in tasks(store, "break_at_one")]
        results = {task.part.name: result for task, result in engine.run(made)}

    assert isinstance(results["1"], SourceError)
    assert "raised IndexError: beyond the end (test_engine.py:" in str(results["1"])
    assert isinstance(results["2"], StageReport)
    with Engine(num_workers) as engine, pytest.raises(IndexError):
        list(engine.run(tasks(store, "break_at_one")))


def test_a_dead_worker_is_an_error_that_says_what_to_do(store: Store) -> None:
    with Engine(2) as engine, pytest.raises(StageError, match=r"its worker process died.*Run again"):
        list(engine.run(tasks(store, "die")))


def test_a_hanging_part_is_ended_at_the_deadline(store: Store) -> None:
    with Engine(2, deadline_seconds=1.0) as engine, pytest.raises(StageError, match="no part was finished within 1 s"):
        list(engine.run(tasks(store, "hang")))


def test_workers_die_with_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import sys; from pathlib import Path\n"
        "from pipeline.build.engine import Engine; from pipeline.store.store import Store\n"
        "from tests.pipeline.build.test_engine import tasks\n"
        "if __name__ == '__main__':\n"
        "    with Engine(2) as engine:\n"
        "        engine._started_pool(); print(engine._pool.submit(int).result(), flush=True)\n"
        "        print(*engine._pool._processes, flush=True); list(engine.run(tasks(Store(Path(sys.argv[1])), 'hang')))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    parent = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert parent.stdout is not None
    parent.stdout.readline()
    workers = [int(word) for word in parent.stdout.readline().split()]
    parent.kill()
    parent.wait()

    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert workers
    assert [worker for worker in workers if Path(f"/proc/{worker}").exists()] == []


def test_a_report_is_written_beside_the_tables(tmp_path: Path) -> None:
    write_output(tmp_path / "part", PartOutput({}, StageReport(2, 1, {"too_small": 1})))

    assert (tmp_path / "part" / "report.json").read_bytes().startswith(b'{"dropped":{"too_small":1}')


def test_the_keyboard_stops_the_parent_alone_and_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from pipeline.store.store import Store; from pipeline.build.engine import Engine\n"
        "from tests.pipeline.build.test_engine import tasks\n"
        "with Engine(2) as engine:\n"
        "    print('started', flush=True); list(engine.run(tasks(Store(Path(sys.argv[1])), 'hang')))"
    )
    line = [sys.executable, "-c", code, str(tmp_path / "store")]
    child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(2)
    started = time.monotonic()
    os.killpg(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=25)

    assert time.monotonic() - started < 15  # the parts would hang for 30 seconds
    assert errors.count("Traceback") == 1  # the parent's own; no worker printed one


def work_task(name: str, place: Path, is_of_source: bool) -> PartTask:
    part = Part(name, "clean", Params(), places={"file": place})
    return PartTask(part, "", place.parent, place.parent, is_of_source=is_of_source)


def test_parts_that_come_later_are_left_until_they_are_done(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    work = StageWork(STAGES["normalize"], 1)
    work.add(["a"], [work_task("a", tmp_path / "file", True)])
    assert (work.bytes_done, work.left) == (0, (140, 0)), "the duplicates and the audit are to come"

    work.finish("a")
    work.add(["duplicates"], [work_task("duplicates", tmp_path / "file", False)])
    work.finish("duplicates")
    assert (work.bytes_done, work.left) == (120, (20, 0))


def test_the_tail_of_verify_is_shared_by_the_workers_and_an_unchanged_stage_has_no_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    work = StageWork(STAGES["verify"], 2)
    assert work.left == (0, 0)
    work.add(["snapshot"], [work_task("snapshot", tmp_path / "file", False)])
    assert work.left == (0, 5)
