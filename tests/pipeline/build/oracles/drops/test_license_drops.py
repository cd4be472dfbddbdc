"""A drop for a license whose words are nowhere is seen; one whose words are in the file or in what it names is not."""

import pytest

from pipeline.build.oracles.drops.license_drops import miscaused_drops

PLAIN, GPL = b"/* Sorts. */\nint a;\n", b"/* GNU General\n * Public License, version 2. */\nint a;\n"
TAGGED = b"// SPDX-License-Identifier: MIT\nint a;\n"
NOTICE = "GPL-2.0-only is refused\na.c: the header contains the notice of GPL-2.0-only"
BELOW = "deps/a.c: the file states no license, and it is below the vendored root deps/; no license text in its folder or above"
AGAINST = "a.c says `used by permission of the author`, against MIT by license_text\nLICENSE: the text of MIT"
UNKNOWN = "'Acme-1.0' names Acme-1.0, which is not an SPDX identifier\na.c:1: SPDX-License-Identifier: Acme-1.0"


BROKEN = "REUSE.toml: annotation 1 has no path"


@pytest.mark.parametrize(
    ("reason", "license", "detail", "files", "has_cause"),
    [
        ("license_refused", "GPL-2.0-only", NOTICE, {"a.c": GPL}, True),
        ("license_refused", "GPL-2.0-only", NOTICE, {"a.c": GPL.decode().encode("utf-16")}, True),
        ("license_refused", "GPL-2.0-only", NOTICE, {"a.c": PLAIN}, False),
        ("license_refused", "GPL-2.0-only", NOTICE, {"a.c": PLAIN, "a.c.license": GPL}, True),
        ("license_refused", "GPL-2.0-only", NOTICE, {"a.c": PLAIN, "COPYING": GPL}, False),
        ("license_refused", "GPL-2.0-only", f"{NOTICE}\nCOPYING: the text", {"a.c": PLAIN, "COPYING": GPL}, True),
        ("license_refused", "GPL-2.0-only", "x", {"a.c": GPL}, False),
        ("license_refused", "Info-ZIP", "Info-ZIP is refused\na.c: the header", {"a.c": b"// Info-ZIP\n"}, True),
        ("license_refused", "Info-ZIP", "Info-ZIP is refused\na.c: the header", {"a.c": PLAIN}, False),
        ("license_quarantined", None, f"a.c: {BROKEN}", {"a.c": PLAIN, "REUSE.toml": b"x"}, True),
        ("license_quarantined", None, f"a.c: {BROKEN}", {"a.c": PLAIN}, False),
        ("license_quarantined", None, f"a.c: d/{BROKEN}", {"a.c": PLAIN, "d/REUSE.toml": b"x"}, False),
        (
            "license_refused",
            None,
            "a.c: the file states no license, and the recipe inherits none",
            {"a.c": PLAIN},
            True,
        ),
        ("license_refused", None, "x", {"a.c": PLAIN}, False),
        ("license_refused", "MIT WITH Sorts", "Sorts does not go with MIT", {"a.c": PLAIN}, True),
        ("license_quarantined", None, BELOW, {"deps/a.c": PLAIN}, True),
        ("license_quarantined", None, BELOW, {"deps/a.c": TAGGED}, False),
        ("license_quarantined", None, BELOW, {"a.c": PLAIN}, False),
        ("license_quarantined", None, "x", {"a.c": PLAIN}, False),
        ("license_quarantined", None, "a.c: neither the file nor the package states a license", {"a.c": PLAIN}, True),
        ("license_quarantined", "MIT", AGAINST, {"a.c": b"// Used by permission of the author.\n"}, True),
        ("license_quarantined", "MIT", AGAINST, {"a.c": PLAIN}, False),
        ("license_unknown", "Acme-1.0", UNKNOWN, {"a.c": b"// SPDX-License-Identifier: Acme-1.0\n"}, True),
        ("license_unknown", "Acme-1.0", UNKNOWN, {"a.c": PLAIN}, False),
        ("license_unknown", "Acme-1.0", "x", {"a.c": b"// SPDX-License-Identifier: Acme-1.0\n"}, False),
        ("license_refused", "GPL-2.0-only", f"{NOTICE} <redacted-email-1>", {"a.c": PLAIN}, True),
        ("too_small", None, "x", {"a.c": PLAIN}, True),
    ],
)
def test_what_a_drop_says_is_written_where_it_says(
    reason: str, license: str | None, detail: str, files: dict[str, bytes], has_cause: bool
) -> None:
    path = next(iter(files))
    row = {"source": "one", "path": path, "reason": reason, "license": license, "detail": detail}

    assert list(miscaused_drops([row], files, "MIT")) == ([] if has_cause else [("one", path)])


@pytest.mark.parametrize(
    ("reason", "detail", "has_cause"),
    [
        ("license_refused", NOTICE, True),
        ("license_refused", "x", False),
        ("license_quarantined", "the license of its file changes: MIT before, Zlib after", True),
        ("license_quarantined", "version 00 of its file cannot be decoded", True),
        ("license_quarantined", AGAINST, True),
        ("license_quarantined", BELOW, True),
        ("license_quarantined", "x", False),
        ("license_unknown", UNKNOWN, True),
        ("license_unknown", AGAINST, False),
        ("license_unknown", "x", False),
    ],
)
def test_a_drop_of_a_change_says_what_such_drops_say(reason: str, detail: str, has_cause: bool) -> None:
    path = f"{'0' * 40}:a.c"
    row = {"source": "one", "path": path, "reason": reason, "license": "GPL-2.0-only", "detail": detail}

    assert list(miscaused_drops([row], {path: PLAIN}, "MIT")) == ([] if has_cause else [("one", path)])


def test_a_license_that_the_pin_declares_is_told_by_it() -> None:
    row = {"source": "one", "path": "a.c", "reason": "license_refused", "license": "GPL-2.0-only"}
    row |= {"detail": "GPL-2.0-only is refused\npin: declared_license = GPL-2.0-only"}

    assert list(miscaused_drops([row], {"a.c": PLAIN}, "GPL-2.0-only")) == []
    assert list(miscaused_drops([row], {"a.c": PLAIN}, "MIT")) == [("one", "a.c")]
