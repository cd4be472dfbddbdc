"""Changes go with a file that is a copy of copyleft text or of what is held out, and with no other."""

import pytest

from pipeline.core.records import DuplicateRecord
from pipeline.stages.normalize.duplicates.change_copies import follow_files
from pipeline.stages.normalize.duplicates.duplicates import ComparedDocument, Reason

CHANGE = "a" * 40 + ":x.c"


def compared(source: str, path: str, split: str) -> ComparedDocument:
    return ComparedDocument(f"{source}/{path}", source, path, split, 9, "digest", False, 9, None, ":" in path)


@pytest.mark.parametrize(
    ("reason", "split", "keeper_split", "expected"),
    [
        (Reason.COPYLEFT_COPY, "train", None, Reason.COPYLEFT_COPY),
        (Reason.EXACT_DUPLICATE, "train", "held_out", Reason.NEAR_DUPLICATE),
        (Reason.CONTAINED, "train", "held_out", Reason.CONTAINED),
        (Reason.EXACT_DUPLICATE, "train", "train", None),
        (Reason.NEAR_DUPLICATE, "held_out", "held_out", None),
    ],
)
def test_a_change_goes_with_its_file_for_these_reasons(
    reason: Reason, split: str, keeper_split: str | None, expected: Reason | None
) -> None:
    file, keeper = compared("one", "x.c", split), compared("two", "y.c", keeper_split or "train")
    lost = DuplicateRecord("one/x.c", "one", "x.c", 9, "two/y.c", "two", "y.c", 0.9, reason, "two/y.c", 1)
    others = [compared("two", CHANGE, split), compared("one", "a" * 40 + ":z.c", split)]
    found = follow_files([compared("one", CHANGE, split), *others], [lost], [file, *([keeper] if keeper_split else [])])

    assert [(each.path, each.keeper_path, each.reason) for each in found] == (
        [(CHANGE, "y.c", expected)] if expected else []
    )
