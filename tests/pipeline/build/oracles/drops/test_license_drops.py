"""A drop for a license whose words are nowhere is seen; one whose words are in the file or in what it names is not."""

import base64
import tomllib
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.build.oracles.drops.license_drops import miscaused_drops, stands_in, unaccented_words
from pipeline.stages.normalize.license.prose.names import NAMES_FILE
from tests.pipeline.stages.normalize.license.test_read_comments import (
    HEADERS,
    POLICY,
    PROJECT,
    after_includes,
    in_block,
)
from tests.pipeline.stages.normalize.license.test_texts import MIT, spdx_text

PLAIN, GPL = b"/* Sorts. */\nint a;\n", b"/* GNU General\n * Public License, version 2. */\nint a;\n"
TAGGED = b"// SPDX-License-Identifier: MIT\nint a;\n"
NOTICE = "GPL-2.0-only is refused\na.c: the header contains the notice of GPL-2.0-only"
BELOW = "deps/a.c: the file states no license, and it is below the vendored root deps/; no license text in its folder or above"
AGAINST = "a.c says `used by permission of the author`, against MIT by license_text\nLICENSE: the text of MIT"
IN_UTF_7 = b"// +%b-\n" % base64.b64encode("used by permission of the author".encode("utf-16-be")).rstrip(b"=")
UNKNOWN = "'Acme-1.0' names Acme-1.0, which is not an SPDX identifier\na.c:1: SPDX-License-Identifier: Acme-1.0"


NAMES = tomllib.loads(files("pipeline.stages.normalize.license.prose").joinpath(NAMES_FILE).read_text())
WRITTEN = [(id.strip(), name, kind) for kind in ("full", "short") for id, each in NAMES[kind].items() for name in each]
EMPTY = "the expression is empty\na.c:1: SPDX-License-Identifier: "
BROKEN_TAG = "'Acme AND' is not an SPDX expression: x\na.c:1: SPDX-License-Identifier: Acme AND"
LONG = "'Acme OR Acme'... has 9000 characters; longer ones than 8000 are not read"
BRACKETS = f"{'(' * 60!r}... has 1100 characters; longer ones than 1000 are not read"
LETTERS = f"{'a ' * 30!r}... has 1200 characters; longer ones than 1000 are not read"
QUOTES = f"{'a ' + chr(39) * 9 + chr(1)!r} is not an SPDX expression: x"
NO_LICENSE = "the file states no license, and"
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
        ("license_quarantined", "MIT", AGAINST, {"a.c": IN_UTF_7}, False),
        ("license_unknown", "Acme-1.0", UNKNOWN, {"a.c": b"// SPDX-License-Identifier: Acme-1.0\n"}, True),
        ("license_unknown", "Acme-1.0", UNKNOWN, {"a.c": PLAIN}, False),
        ("license_unknown", "Acme-1.0", "x", {"a.c": b"// SPDX-License-Identifier: Acme-1.0\n"}, False),
        ("license_unknown", "Acme-1.0", UNKNOWN, {"a.c": TAGGED}, False),
        ("license_unknown", None, EMPTY, {"a.c": b"// SPDX-License-Identifier:\n"}, True),
        ("license_unknown", None, EMPTY, {"a.c": PLAIN}, False),
        ("license_quarantined", None, EMPTY, {"a.c": b"// licensed\n"}, False),
        ("license_unknown", None, BROKEN_TAG, {"a.c": b"// SPDX-License-Identifier: Acme AND\n"}, True),
        ("license_unknown", None, BROKEN_TAG, {"a.c": PLAIN}, False),
        ("license_unknown", None, LONG, {"a.c": b"// SPDX-License-Identifier: Acme OR Acme\n"}, True),
        ("license_unknown", None, BROKEN_TAG.replace("Acme", "ACME"), {"a.c": b"// Tag: Acme AND\n"}, True),
        ("license_unknown", None, BRACKETS, {"a.c": PLAIN, "a.c.license": b"x: " + b"( (" * 550}, True),
        ("license_unknown", None, BRACKETS, {"a.c": PLAIN, "a.c.license": b"(" * 59}, False),
        ("license_unknown", None, LETTERS, {"a.c": b"// " + b"a  " * 600}, True),
        ("license_unknown", None, LETTERS, {"a.c": PLAIN}, False),
        ("license_unknown", None, QUOTES, {"a.c": b"// a " + b"'" * 9 + b"\1\n"}, True),
        ("license_unknown", None, QUOTES, {"a.c": PLAIN}, False),
        ("license_quarantined", None, "a.c: a.c: annotation 1 has no path", {"a.c": PLAIN}, False),
        ("license_quarantined", None, "a.c: .reuse/dep5: no path", {"a.c": PLAIN, ".reuse/dep5": b"x"}, True),
        ("license_quarantined", None, f"a.c: {NO_LICENSE} its pin inherits none", {"a.c": PLAIN}, True),
        ("license_quarantined", None, "a.c: the license text that it inherits is unclear: two", {"a.c": PLAIN}, True),
        ("license_refused", "GPL-2.0-only", f"a.c: {NO_LICENSE} the recipe inherits none", {"a.c": PLAIN}, False),
        ("license_refused", None, "Sorts does not go with MIT", {"a.c": PLAIN}, False),
        ("license_refused", "MIT", AGAINST, {"a.c": b"// Used by permission of the author.\n"}, False),
        ("license_refused", "GPL-2.0-only", f"{NOTICE} <redacted-email-1>", {"a.c": PLAIN}, True),
        ("license_refused", "GPL-2.0-only", f"{NOTICE} not shown", {"a.c": PLAIN}, True),
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
        ("license_refused", "Sorts does not go with MIT", True),
        ("license_refused", f"a.c: {NO_LICENSE} the recipe inherits none", True),
        ("license_refused", "x", False),
        ("license_quarantined", "the license of its file changes: MIT before, Zlib after", True),
        ("license_quarantined", "version 00 of its file cannot be decoded", True),
        ("license_quarantined", AGAINST, True),
        ("license_quarantined", BELOW, True),
        ("license_quarantined", "x", False),
        ("license_quarantined", f"{'0' * 40}:src/a.c: REUSE.toml is not TOML (line 1)", True),
        ("license_quarantined", f"{'0' * 40}:src/a.c: src/.reuse/dep5 has no header", True),
        ("license_quarantined", f"{'0' * 40}:src/a.c: src/REUSE.toml has no tables", True),
        ("license_quarantined", f"{'0' * 40}:src/a.c: lib/REUSE.toml is not TOML (line 1)", False),
        ("license_unknown", UNKNOWN, True),
        ("license_unknown", EMPTY, True),
        ("license_unknown", f"{'0' * 40}:src/a.c: REUSE.toml is not TOML (line 1)", False),
        ("license_unknown", AGAINST, False),
        ("license_unknown", "x", False),
    ],
)
def test_a_drop_of_a_change_says_what_such_drops_say(reason: str, detail: str, has_cause: bool) -> None:
    path = f"{'0' * 40}:src/a.c"
    row = {"source": "one", "path": path, "reason": reason, "license": "GPL-2.0-only", "detail": detail}

    assert list(miscaused_drops([row], {path: PLAIN}, "MIT")) == ([] if has_cause else [("one", path)])


def test_a_folder_may_be_named_as_a_file_of_statements() -> None:
    path = f"{'0' * 40}:REUSE.toml.d/a.c"
    detail = f"{path}: REUSE.toml.d/REUSE.toml is not TOML (line 1)"
    row = {"source": "one", "path": path, "reason": "license_quarantined", "license": None, "detail": detail}

    assert list(miscaused_drops([row], {path: PLAIN}, "MIT")) == []


@pytest.mark.parametrize(
    ("said", "text", "stands"),
    [
        ("GPL-2.0-only", "only this", False),
        ("Acme-1.0", "Acme, the first", True),
        ("Acme-1.0", "licensed freely", False),
        ("Zlib", "licensed freely", True),
        ("Zlib", "Sorts.", False),
        ("used by permission of the author", "used", False),
        ("alpha beta gamma delta", "alpha or beta", True),
        ("alpha q x z", "alpha", True),
        ("x y", "Sorts.", False),
        ("*/", "Sorts.", False),
        ("alpha and or", "and or", False),
        ("Xalpha beta gamma delta epsilon", "xalpha", False),
    ],
)
def test_a_quotation_stands_where_most_of_its_words_do(said: str, text: str, stands: bool) -> None:
    assert stands_in(said, unaccented_words(text)) == stands


def test_accents_are_no_part_of_words() -> None:
    assert unaccented_words("Bản quyền được, sakl\u0131 & Größe") == "ban quyen duoc sakli grosse"


def test_a_file_that_is_not_stored_is_not_judged() -> None:
    row = {"source": "one", "path": "b.c", "reason": "license_refused", "license": "GPL-2.0-only", "detail": NOTICE}

    assert list(miscaused_drops([row], {"a.c": PLAIN}, "MIT")) == []


@pytest.mark.parametrize(
    ("license", "words", "is_explained"),
    [
        ("W3C", "Sorts.", True),  # it has no word
        ("Acme-B-1.0", "beta", False),
        ("Acme AND Brand", "and so on", False),
        ("Acme-1.0", "value", False),
        ("LicenseRef-Acme", "also", False),
        ("LicenseRef-Acme-Brand", "Sorts.", False),
        ("LicenseRef-Acme-Brand", "ABL terms", True),
        ("BUSL-1.1", "BusinessSource terms", True),
    ],
)
def test_a_license_is_told_by_its_words_alone(license: str, words: str, is_explained: bool) -> None:
    assert is_refusal_explained(license, f"// {words}\n") == is_explained


@pytest.mark.parametrize("words", ["licensed to A", "the agreement", "EULA", "open source"])
def test_what_speaks_of_a_license_explains_one_that_is_not_listed(words: str) -> None:
    assert is_refusal_explained("LicenseRef-Acme", f"// {words}\n")
    assert not is_refusal_explained("LicenseRef-Acme", "// Sorts.\n")


def test_a_license_that_the_pin_declares_is_told_by_it() -> None:
    row = {"source": "one", "path": "a.c", "reason": "license_refused", "license": "GPL-2.0-only"}
    row |= {"detail": "GPL-2.0-only is refused\npin: declared_license = GPL-2.0-only"}

    assert list(miscaused_drops([row], {"a.c": PLAIN}, "GPL-2.0-only")) == []
    assert list(miscaused_drops([row], {"a.c": PLAIN}, "MIT")) == [("one", "a.c")]


def is_refusal_explained(license: str, text: str) -> bool:
    row = {"source": "one", "path": "a.c", "reason": "license_refused", "license": license}
    row |= {"detail": f"{license} is refused\na.c: the header contains the notice of {license}"}
    return not list(miscaused_drops([row], {"a.c": text.encode()}, "MIT"))


@settings(max_examples=400, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_each_name_that_the_license_rule_knows_explains_a_drop(data: st.DataObject) -> None:
    """The id of a name says what it is, or is that of SPDX: a name that only the rule knows would block who drops for it."""
    license, name, kind = data.draw(st.sampled_from(WRITTEN))
    written = data.draw(st.from_regex(name.replace(r"\w", "[a-z]"), fullmatch=True))
    if license in POLICY["allowed"]:
        assert stands_in(license, unaccented_words(f"license {written}"))
    else:
        assert is_refusal_explained(license, f"// {'license ' if kind == 'short' else ''}{written}\n")


@pytest.mark.parametrize(
    ("license", "words"),
    [
        ("GPL-2.0-only", "gpl, the second"),
        ("LGPL-2.1-only", "Lesser General Public License"),
        ("AGPL-3.0-only", "Affero's terms"),
        ("GPL-3.0-only", "copyleft"),
        ("GPL-2.0-only", "terms of GNU"),
        ("LGPL-2.0-or-later WITH WxWindows-exception-3.1", "wxWidgets terms"),
    ],
)
def test_each_sign_of_copyleft_explains_a_drop(license: str, words: str) -> None:
    assert is_refusal_explained(license, f"// {words}\n")
    assert not is_refusal_explained(license, "// terms\n")


@pytest.mark.parametrize("license", ["BSD-4-Clause", "AFL-2.1", "CPL-1.0", "OSL-3.0", "SSPL-1.0"])
def test_the_text_of_a_license_explains_a_drop(license: str) -> None:
    operative = "\n".join(spdx_text(license).splitlines()[4:])
    assert is_refusal_explained(license, operative)
    assert not is_refusal_explained(license, MIT)


@pytest.mark.parametrize(
    "license", ["OSL-3.0", "QPL-1.0", "BUSL-1.1", "Elastic-2.0", "ODbL-1.0", "CC-BY-NC-4.0", "LicenseRef-PolyForm"]
)
def test_a_license_of_which_a_text_does_not_speak_explains_no_drop(license: str) -> None:
    assert not is_refusal_explained(license, "#include <vector>\n// Opens the software queue, or a database.\nint a;\n")


@pytest.mark.parametrize("shape", [in_block, after_includes])
def test_each_labeled_header_explains_its_drop(shape) -> None:  # type: ignore[no-untyped-def]
    flawed, num_dropped = [], 0
    for header in (*HEADERS["refused"], *HEADERS["lines"][::8], *HEADERS["free_words"][::8]):
        found, text = PROJECT.decide("src/a.c", shape(header)), shape(header).encode()
        if found.drop_reason:
            row = {"source": "one", "path": "src/a.c", "reason": found.drop_reason, "license": found.expression}
            row |= {"detail": found.detail}
            if list(miscaused_drops([row], {"src/a.c": text, "LICENSE": MIT.encode()}, "MIT")):
                flawed.append(header)
            num_dropped += 1
    assert (flawed, num_dropped > 200) == ([], True)


@pytest.mark.parametrize(
    ("written", "said", "encoding"),
    [
        ("Все права защищены. Копирование запрещено.", "всеправазащищены.копированиезапрещено.", "utf-8"),
        ("Все права защищены. Копирование запрещено.", "всеправазащищены.копированиезапрещено.", "cp1251"),
        ("Все права защищены. Копирование запрещено.", "всеправазащищены.копированиезапрещено.", "utf-16"),
        ("Все\n * права\n * защищены.", "всеправазащищены.*/", "koi8_r"),
        ("無断転載を禁じます。", "無断転載を禁じます。*/", "shift_jis"),
        ("無断転載を禁じます。", "無断転載を禁じます。*/", "iso2022_jp"),
        ("版权所有，未经许可不得复制。", "版权所有,未经许可不得复制。", "gb18030"),
        ("무단 복제 및 배포를 금합니다", "무단복제및배포를금합니다", "utf-8"),
        ("无断".encode().decode("cp1252", "ignore") + "版权所有".encode().decode("latin-1"), "版权所有", "utf-8"),
        ("Bản quyền được bảo lưu", "ban quyen duoc bao luu", "utf-8"),
        ("Tüm hakları saklıdır", "tum haklari saklidir", "cp1254"),
        ("Wszelkie prawa zastrzeżone", "wszelkie prawa zastrzezone", "utf-8"),
        ("Alle Rechte vorbehalten", "alle rechte vorbehalten", "latin-1"),
        ("Nicht unter der MIT-Lizenz", "not licensed under MIT", "utf-8"),
        ("Licence terms: ask ann@host.org", "license terms ask redacted email 1", "utf-8"),
    ],
)
def test_words_stand_in_a_file_in_any_language_and_encoding(written: str, said: str, encoding: str) -> None:
    row = {"source": "one", "path": "a.c", "reason": "license_quarantined", "license": "MIT"}
    row |= {"detail": f"a.c says `{said}`, against MIT by license_text\nLICENSE: the text of MIT"}
    text = f"/* {written} */\nint a;\n".encode(encoding)

    assert list(miscaused_drops([row], {"a.c": text, "LICENSE": MIT.encode()}, "MIT")) == []
    assert list(miscaused_drops([row], {"a.c": PLAIN, "LICENSE": MIT.encode()}, "MIT")) == [("one", "a.c")]
