"""A corpus has one writer; a dead one holds nothing."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from pipeline.core.errors import LockedError, ParamsError
from pipeline.store.store import Store


def test_a_second_writer_waits_and_reports_the_holder(store: Store) -> None:
    notices: list[str] = []
    with (
        store.writer("tiny", "run one"),
        pytest.raises(LockedError, match="run one"),
        store.writer("tiny", "run two", 0.3, notices.append),
    ):
        pass
    assert notices == ["run one"]


def test_what_is_refused_leaves_no_file_and_a_writer_that_waited_for_it_holds_one_that_is_there(store: Store) -> None:
    path = store.root / "locks" / "runs" / "tiny"
    waiting: list[str] = []
    held = threading.Event()

    def wait() -> None:
        with store.writer("runs/tiny", "run two", 30, lambda holder: held.set()):
            waiting.append(path.read_text())
            with pytest.raises(LockedError, match="run two"), store.writer("runs/tiny", "run three"):
                pass

    thread = threading.Thread(target=wait)

    def refuse(after: Callable[[], object]) -> None:
        with store.writer("runs/tiny", "run one"):
            after()
            raise ParamsError("a run", "it is refused", "another")

    with pytest.raises(ParamsError):
        refuse(lambda: (thread.start(), held.wait(30)))
    thread.join()
    assert waiting == ["run two"]
    with pytest.raises(ParamsError):
        refuse(lambda: None)
    assert not path.exists()


def test_another_corpus_is_not_held(store: Store) -> None:
    with store.writer("tiny", "run one"), store.writer("quick", "run two"):
        pass


def test_a_killed_writer_releases_its_corpus_and_its_leftovers_are_removed(store: Store) -> None:
    code = (
        "import sys, time; from pathlib import Path; from pipeline.store.store import Store\n"
        "with Store(Path(sys.argv[1])).writer('tiny', 'the dead') as folder:\n"
        "    (folder / 'half').write_text('x'); print('held', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(store.root)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    os.kill(child.pid, signal.SIGKILL)
    child.wait()

    with store.writer("tiny", "the living") as folder:
        assert list(folder.iterdir()) == []
