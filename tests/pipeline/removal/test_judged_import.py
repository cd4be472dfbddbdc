"""An import brings no file that is withdrawn, and no bytes that were erased, under whichever name."""

from pathlib import Path

import pytest

from pipeline.build.withdrawal import withdraw
from pipeline.core.errors import SnapshotError
from pipeline.removal.erasure import erase
from pipeline.removal.judged_import import JudgedImport
from tests.pipeline.removal.conftest import FILES_OF, OWN_SHA256, Collected

SNAPSHOT = "0" * 64


@pytest.mark.parametrize("selector", ["made/a.c", "made", f"sha256:{OWN_SHA256}"])
def test_erased_bytes_of_another_release_or_under_another_name_are_refused(
    collected: Collected, tmp_path: Path, selector: str
) -> None:
    withdraw(collected.store, selector, "a test")
    erase(collected.store, [selector], "a test")
    renamed = {"files-of-made": {"lib/a.c": FILES_OF["made"]["a.c"], "LICENSE": FILES_OF["made"]["LICENSE"]}}
    other = Collected(tmp_path / "other", renamed)

    with pytest.raises(SnapshotError, match=r"source files-of-made holds lib/a.c, and .*made|sha256.* withdraws it"):
        JudgedImport(collected.store, SNAPSHOT).refuse_collected(other.store.read(other.first["files-of-made"]))


def test_license_texts_and_bytes_that_another_source_has_here_are_no_copy(collected: Collected, tmp_path: Path) -> None:
    withdraw(collected.store, "made", "a test")
    erase(collected.store, ["made"], "a test")
    files = {"c.c": FILES_OF["made"]["b.c"], "LICENSE": FILES_OF["made"]["LICENSE"], "empty.c": b""}
    other = Collected(tmp_path / "other", {"third": files})
    JudgedImport(collected.store, SNAPSHOT).refuse_collected(other.store.read(other.first["third"]))
