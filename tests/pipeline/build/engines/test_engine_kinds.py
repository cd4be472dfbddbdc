"""An engine that cannot be used here is refused in words."""

from pathlib import Path

import pytest

from pipeline.build.engines import engine_kinds
from pipeline.build.engines.engine_kinds import open_engine
from pipeline.core.errors import ParamsError


def test_an_address_without_an_engine_that_has_any_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match="`--engine ray`, or in the launchpad `engine: ray`"):
        open_engine("local", 1, "127.0.0.1:6379", tmp_path)


def test_an_engine_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match="one of local, ray"):
        open_engine("rya", 1, "", tmp_path)


def test_an_engine_whose_library_is_not_installed_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_kinds, "find_spec", lambda name: None)
    with pytest.raises(ParamsError, match=r"pip install sluice\[ray\]"):
        open_engine("ray", 1, "", tmp_path)
