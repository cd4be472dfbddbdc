"""Canaries are caught by sound rules, and reveal a rule that no longer detects anything."""

import pytest

from pipeline.build.canaries import file_canaries
from pipeline.build.canaries.canaries import send
from pipeline.build.canaries.file_canaries import send_archives, send_files
from pipeline.build.recipes import RECIPES, CorpusParams
from pipeline.stages.normalize.params import NormalizeParams


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_every_canary_is_caught_with_the_params_of_every_recipe(recipe) -> None:
    caught = send(recipe.params).caught

    assert len(caught) >= 90
    assert [name for name, seen in caught.items() if not seen] == []


def test_files_and_archives_are_among_them(tmp_path) -> None:
    assert len(send_files(tmp_path / "files", CorpusParams())) >= 30
    assert len(send_archives(tmp_path / "archives", CorpusParams())) >= 5


def test_a_threshold_that_was_moved_lets_the_near_twin_through() -> None:
    params = CorpusParams()
    duplicates = params.normalize.duplicates.model_copy(update={"min_jaccard_between_sources": 0.75})
    normalize: NormalizeParams = params.normalize.model_copy(update={"duplicates": duplicates})
    caught = send(params.model_copy(update={"normalize": normalize})).caught

    assert [name for name, seen in caught.items() if not seen] == ["canary-twins/near_copy.cpp"]


def test_a_canary_that_is_lost_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_canaries, "_fates", lambda store, normalize_id: {})
    caught = send(CorpusParams()).caught

    assert not any(seen for name, seen in caught.items() if name.startswith("canary-") and "/" in name)
