"""Child sessions: an answer is read from JSON, and another end than the expected one is an error that names it."""

import sys
from pathlib import Path

import pytest

from pipeline.store.store import Store
from trainer.train.child_session import ChildSessions, SessionFailed


@pytest.fixture
def sessions(store: Store, tmp_path: Path) -> ChildSessions:
    return ChildSessions(store, "f" * 64, tmp_path / "runs", 2)


def test_an_answer_is_json_and_a_failure_names_its_exit_code(sessions: ChildSessions) -> None:
    assert sessions.answer([sys.executable, "-c", "print('[1]')"]) == [1]
    with pytest.raises(SessionFailed, match="exit 3"):
        sessions.answer([sys.executable, "-c", "raise SystemExit(3)"])


def test_a_refusal_is_its_message(sessions: ChildSessions) -> None:
    assert "object ffffffffffff" in sessions.refused("one")


def test_a_session_that_ends_before_its_kill_is_an_error(sessions: ChildSessions) -> None:
    with pytest.raises(SessionFailed, match="run one ended with 1 before it was killed"):
        sessions.kill("one", lambda: False)
