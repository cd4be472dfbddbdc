"""Locks of files: one that is held names its holder."""

from pathlib import Path

import pytest

from pipeline.core.errors import LockedError
from pipeline.core.file_locks import acquire


def test_a_lock_that_is_held_is_reported_once_and_refused_with_its_holder(tmp_path: Path) -> None:
    path, notices = tmp_path / "lock", list[str]()
    path.write_text("run one\n")
    with path.open() as first, path.open() as second:
        acquire(first.fileno(), path, "corpus tiny", 0.0, notices.append)
        with pytest.raises(LockedError, match="corpus tiny: it is being written by run one"):
            acquire(second.fileno(), path, "corpus tiny", 0.25, notices.append)

    assert notices == ["run one"]
