"""A version is named by its own id, and one that is withdrawn takes the changes from and to it along."""

from pipeline.core.change_text import change_path
from pipeline.core.digests import text_sha256
from pipeline.core.records import FileModification
from pipeline.pins.selection import Selector, Selectors
from pipeline.stages.collect.change_rows import changes_from_or_to, version_place, version_row, withdrawn_versions
from pipeline.stages.collect.contents import ReadVersion

BEFORE = ReadVersion("a.c", "1" * 40, b"int a;\n")
AFTER = ReadVersion("a.c", "2" * 40, b"int b;\n")
CHANGE = FileModification(
    source="one",
    revision="r1",
    path="a.c",
    repo_stable_id="",
    filepath_stable_id="",
    file_local_commit_index=1,
    commit_hash="c" * 40,
    parent_hashes=(),
    author_time=0,
    commit_time=0,
    subject="",
    old_blob_id=BEFORE.git_blob_id,
    new_blob_id=AFTER.git_blob_id,
    num_diff_chars=2,
    has_rename_ambiguity=False,
)


def test_a_version_has_the_id_that_its_commit_gives_it() -> None:
    row = version_row("one", "r1", AFTER)

    assert (row.path, row.git_blob_id, row.blob_sha256) == ("a.c", "2" * 40, text_sha256("int b;\n"))


def test_a_version_that_is_withdrawn_by_its_bytes_takes_the_changes_from_and_to_it_along() -> None:
    selector = Selector(f"sha256:{text_sha256('int a;' + chr(10))}")
    gone = withdrawn_versions("one", [BEFORE, AFTER], Selectors([selector]))

    assert gone == {version_place(BEFORE): selector}
    assert changes_from_or_to(gone, [CHANGE]) == {change_path("c" * 40, "a.c"): selector}
    assert changes_from_or_to({}, [CHANGE]) == {}
    assert withdrawn_versions("one", [BEFORE, AFTER], Selectors([])) == {}
