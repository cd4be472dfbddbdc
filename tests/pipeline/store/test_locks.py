"""A corpus has one writer; a dead one holds nothing."""

import os
import signal
import subprocess
import sys

import pytest

from pipeline.core.errors import LockedError
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
