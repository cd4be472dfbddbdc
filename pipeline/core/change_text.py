"""ChangeText: the text of a document of change, what one commit did to one file, and the path by which it is called.

    // commit: SUBJECT
    // path: PATH
    //@@ before
    lines of the first hunk as they were, with three lines of context
    //@@ after
    the same lines as they became

and so on for each hunk. The marks are comments of C, so that what reads code reads a change too. Its path is `COMMIT:PATH`, as git
calls the file at that commit.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

CHANGES = "changes"
"""Field of the identity of a part that is true where documents of change are among its files."""
MAX_FILES_IN_COMMIT = 5
"""Maximum number of source files that an accepted commit touches: a larger one is a sweep over the code."""
MIN_DIFF_CHARS, MAX_DIFF_CHARS = 50, 50_000
"""Characters of the hunks of one file's diff with three lines of context, file names not counted."""
BEFORE, AFTER = "//@@ before", "//@@ after"
MARK = "//@@ "
"""Beginning of the lines that are marks. A change of which another line begins so is no document."""
_COMMIT, _PATH = "// commit: ", "// path: "
_NUM_HEADER_LINES = 2
_CALLED = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64}):(.+)", re.DOTALL)


class Hunk(NamedTuple):
    """Lines of a file before and after a change, with the context around them and their line ends."""

    before: bytes
    after: bytes


def compose_change(subject: str, path: str, hunks: Sequence[Hunk]) -> bytes:
    """Return the content of a document of change."""
    header = f"{_COMMIT}{subject}\n{_PATH}{path}\n".encode("utf-8", "surrogateescape")
    marked = (f"{mark}\n".encode() + lines for hunk in hunks for mark, lines in zip((BEFORE, AFTER), hunk, strict=True))
    return header + b"".join(marked)


def change_path(commit: str, path: str) -> str:
    """Return the path of the document of what a commit did to a file."""
    return f"{commit}:{path}"


def changed_file(path: str) -> str:
    """Return the path of the file that a document of change is about; that of another document is its own."""
    called = _CALLED.fullmatch(path)
    return called[2] if called else path


def is_change_path(path: str) -> bool:
    """Return whether a path is that of a document of change."""
    return _CALLED.fullmatch(path) is not None


def header_of(content: bytes) -> bytes:
    """Return the content of a document of change without its hunks."""
    return b"\n".join(content.split(b"\n", _NUM_HEADER_LINES)[:_NUM_HEADER_LINES])


def hunks_of(text: str) -> str:
    """Return the text of a document of change without its header: equal ones are one change, whatever their subjects and paths."""
    return text.split("\n", _NUM_HEADER_LINES)[-1]


def hunk_starts(text: str) -> list[int]:
    """Return the byte at which each mark of a document of change begins."""
    starts, place = [], 0
    for line in text.split("\n"):
        if line.startswith(MARK):
            starts.append(place)
        place += len(line.encode()) + 1
    return starts
