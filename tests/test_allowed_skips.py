"""Skips: one that is not on the list, or does not apply here, fails its test, in collection too."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import allowed_skips
from tests.allowed_skips import ALLOWED_SKIPS, AllowedSkip, problem_of

PLANTED = """
import pytest
def test_listed(): pytest.skip("no C++ compiler is installed")
def test_imported(): pytest.importorskip("no_such_module")
@pytest.mark.skip(reason="for now")
def test_marked(): pass
@pytest.mark.skipif(True, reason="datasets is not installed")
def test_here(): pass
@pytest.mark.xfail(reason="known")
def test_known(): assert False
"""


def test_an_unlisted_skip_fails_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "test_planted.py").write_text(PLANTED)
    (tmp_path / "test_module.py").write_text('import pytest\npytest.skip("all of it", allow_module_level=True)\n')
    line = [sys.executable, "-m", "pytest", "-q", "-p", "tests.allowed_skips", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(
        [*line, "--continue-on-collection-errors", "-c", "/dev/null", f"--rootdir={tmp_path}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=allowed_skips.ROOT,
    )

    red = {
        line.split(" - ")[0].rpartition("/")[2]
        for line in done.stdout.splitlines()
        if line.startswith(("FAILED", "ERROR"))
    }
    assert {"test_planted.py::test_imported", "test_planted.py::test_marked", "test_module.py"} <= red, done.stdout
    assert "test_planted.py::test_known" not in red
    assert "tests/allowed_skips.py" in done.stdout


def test_a_reason_counts_only_where_it_applies(monkeypatch: pytest.MonkeyPatch) -> None:
    for applies, is_allowed in ((True, True), (False, False)):
        monkeypatch.setattr(allowed_skips, "ALLOWED_SKIPS", (AllowedSkip("no .*", lambda: applies, ""),))  # noqa: B023
        assert (problem_of("no disk") == "") is is_allowed
        assert problem_of("no") != ""


def test_the_libraries_of_dev_are_never_a_reason_in_the_own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = [
        "datasets is not installed",
        "torchdata is not installed",
        "the extra `compiler` is not installed: cmake",
    ]
    monkeypatch.setattr(sys, "prefix", str(allowed_skips.ROOT / ".venv"))
    assert all(problem_of(reason) for reason in reasons)
    monkeypatch.setattr(sys, "prefix", "/usr")
    assert not any(problem_of(reason) for reason in reasons)


def test_each_entry_says_why() -> None:
    assert all(skip.why and skip.reason for skip in ALLOWED_SKIPS)
