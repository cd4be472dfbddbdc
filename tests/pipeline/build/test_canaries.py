"""Canaries are caught by sound gates, and reveal a gate that no longer detects anything."""

import pytest

from pipeline.build import canaries
from pipeline.build.canaries import send
from pipeline.build.recipes import CorpusParams
from pipeline.stages.normalize.params import NormalizeParams


def test_every_canary_is_caught() -> None:
    caught = send(CorpusParams())

    assert len(caught) >= 30
    assert [name for name, seen in caught.items() if not seen] == []


def test_a_threshold_that_was_moved_lets_the_near_twin_through() -> None:
    params = CorpusParams()
    duplicates = params.normalize.duplicates.model_copy(update={"min_jaccard_between_sources": 0.75})
    normalize: NormalizeParams = params.normalize.model_copy(update={"duplicates": duplicates})
    caught = send(params.model_copy(update={"normalize": normalize}))

    assert [name for name, seen in caught.items() if not seen] == ["canary-twins/near_copy.cpp"]


def test_a_canary_that_is_lost_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canaries, "_fates", lambda store, normalize_id: {})
    caught = send(CorpusParams())

    assert not any(seen for name, seen in caught.items() if "/" in name)
