"""Resources: the store that the environment names, and errors of a user as failures without retries."""

from pathlib import Path

import dagster as dg
import pytest

from assets.resources import BuildResource, StoreResource, refusals
from pipeline.build.recipes import ROOT
from pipeline.core.errors import ParamsError


def test_the_store_is_the_one_that_the_environment_names(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert StoreResource().open().root == root
    monkeypatch.delenv("SLUICE_STORE")
    assert StoreResource().open().root == ROOT / "store"
    monkeypatch.setenv("SLUICE_STORE", "")
    assert StoreResource().open().root == ROOT / "store"


def test_an_error_of_a_user_is_a_failure_without_retries_and_a_defect_stays_itself() -> None:
    with pytest.raises(dg.Failure) as caught, refusals():
        raise ParamsError("row_length", "3", "at least 16", "Correct it.")
    assert caught.value.allow_retries is False
    assert caught.value.description == "ParamsError: row_length: 3; expected at least 16. Correct it."
    with pytest.raises(ZeroDivisionError), refusals():
        _ = 1 // 0


def test_a_build_exists_only_inside_a_run() -> None:
    with pytest.raises(RuntimeError, match="only inside a run"):
        _ = BuildResource(recipe="tiny").build
