"""A trainer without an answer is an error in words."""

from pathlib import Path

import pytest

from pipeline.core.errors import StageError
from pipeline.lineage.origins import trainer_answer as answers
from pipeline.lineage.origins.trainer_answer import trainer_answer
from pipeline.store.store import Store


def test_a_trainer_without_an_answer_is_an_error_in_words(
    tiny_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "__init__.py").touch()
    (tmp_path / "trainer" / "__main__.py").write_text("raise SystemExit('no room')\n")
    monkeypatch.setattr(answers, "consumer_root", lambda: tmp_path)

    with pytest.raises(StageError, match="trainer which: it printed no room; expected one JSON value"):
        trainer_answer(tiny_store, "which")
