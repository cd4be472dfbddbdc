"""An import brings no file that is withdrawn, and no bytes that were erased, under whichever name."""

from pathlib import Path

import pytest

from pipeline.build.withdrawal import restore, withdraw, withdraw_all
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


def test_the_refusal_names_the_withdrawal_that_removed_the_bytes_which_its_undo_alone_lets_in(
    collected: Collected, tmp_path: Path
) -> None:
    store, own, d = collected.store, FILES_OF["made"]["a.c"], FILES_OF["other"]["d.c"]
    withdraw_all(store, ["made/a.c", "other/d.c"], "a test")
    erase(store, ["made/a.c", "other/d.c"], "a test")
    bundles = {name: Collected(tmp_path / name, {name: {"x.c": content}}) for name, content in (("e", own), ("f", d))}
    sources = {name: each.store.read(each.first[name]) for name, each in bundles.items()}

    for name, selector in (("e", "made/a.c"), ("f", "other/d.c")):
        with pytest.raises(SnapshotError, match=rf"erased here with {selector}.*--undo {selector}"):
            JudgedImport(store, SNAPSHOT).refuse_collected(sources[name])
    restore(store, "other/d.c", "a mistake")
    JudgedImport(store, SNAPSHOT).refuse_collected(sources["f"])
    with pytest.raises(SnapshotError, match=r"erased here with made/a.c.*--undo made/a.c"):
        JudgedImport(store, SNAPSHOT).refuse_collected(sources["e"])


def test_license_texts_and_bytes_that_another_source_has_here_are_no_copy(collected: Collected, tmp_path: Path) -> None:
    withdraw(collected.store, "made", "a test")
    erase(collected.store, ["made"], "a test")
    files = {"c.c": FILES_OF["made"]["b.c"], "LICENSE": FILES_OF["made"]["LICENSE"], "empty.c": b""}
    other = Collected(tmp_path / "other", {"third": files})
    JudgedImport(collected.store, SNAPSHOT).refuse_collected(other.store.read(other.first["third"]))
