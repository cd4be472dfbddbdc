"""ShownText scrubs a text before it cuts it, and what it returns is printable and bounded."""

import time

import pytest

from pipeline.core.errors import ArchiveError
from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.shown_text import (
    MAX_SHOWN_BYTES,
    ShownText,
    bounded,
    printable,
    shown_error,
    shown_words,
)

AT = "@"
TOKEN = "AKIA" + "QWERTYUIOPASDFGH"
MAIL = f"ada{AT}sluice-host.org"
HOME = "/home/" + "ada/work"


@pytest.fixture(scope="module")
def shown_text() -> ShownText:
    return ShownText(ScrubParams())


@pytest.mark.parametrize("text", [TOKEN, MAIL, HOME, "8.8." + "4.4"])
def test_nothing_of_a_person_or_a_host_is_shown(text: str, shown_text: ShownText) -> None:
    shown = shown_text.shown(f"REUSE.toml: annotation 1: MIT AND {text}")
    assert text not in shown
    assert shown.startswith("REUSE.toml: annotation 1: MIT AND <redacted-")


def test_an_address_in_the_first_comment_is_not_shown_either(shown_text: ShownText) -> None:
    assert MAIL not in shown_text.shown(f"// Copyright 2020 {MAIL}\n// MIT License\n")


def test_a_text_is_scrubbed_before_it_is_cut(shown_text: ShownText) -> None:
    text = "x" * (MAX_SHOWN_BYTES - 12) + f" {TOKEN} and more words"
    shown = shown_text.shown(text)
    assert len(shown.encode()) <= MAX_SHOWN_BYTES
    assert "AKIA" not in shown
    assert shown.endswith(" …")


@pytest.mark.parametrize("count", [1, MAX_SHOWN_BYTES // 2, MAX_SHOWN_BYTES // 2 + 1, 10_000])
def test_what_is_shown_is_bounded_in_bytes_and_never_cuts_a_character(count: int) -> None:
    shown = bounded("é" * count)
    assert len(shown.encode()) <= MAX_SHOWN_BYTES
    assert shown.removesuffix(" …").strip("é") == ""
    assert shown.endswith(" …") == (count > MAX_SHOWN_BYTES // 2)


def test_signs_that_control_a_terminal_are_replaced_but_line_ends_stay() -> None:
    assert printable("a\x1b[2Jb\u202ec\nd\te\x7f") == "a�[2Jb�c\nd e�"
    assert printable("plain é 漢\n") == "plain é 漢\n"


def test_evidence_loses_its_secrets_and_keeps_its_words_and_addresses(shown_text: ShownText) -> None:
    text = f"SPDX-License-Identifier: MIT AND {TOKEN}\nWrite to {MAIL} from {HOME}.\n"
    evidence = shown_text.evidence(text)
    assert evidence is not None
    assert TOKEN not in evidence
    assert HOME not in evidence
    assert MAIL in evidence


def test_a_name_holds_a_secret_or_not(shown_text: ShownText) -> None:
    assert shown_text.holds_secret(f"home/ada/{TOKEN}.h")
    assert shown_text.holds_secret(f"mail/{MAIL}.cc")
    assert shown_text.holds_secret("tools/db_password=Kz7w-Vb3q.cc")
    names = (
        "home/ada/8.8.4.4/first.h",
        "icons/save@2x.cc",
        "lib@1.2.3/a.cpp",
        "src/password_reset.cc",
        "u/a=b.c/key=x.hh",
    )
    assert not [name for name in names if shown_text.holds_secret(name)]


def test_a_name_is_shown_without_what_it_holds(shown_text: ShownText) -> None:
    assert shown_text.name("src/a b/c.d.cc") == "src/a b/c.d.cc"
    assert shown_text.name(f"mail/{MAIL}.cc") == "mail/<redacted-email-1>.cc"
    assert shown_text.name(f"x/{TOKEN}/y.cc") == "x/<redacted-secret-1>/y.cc"
    assert shown_text.name("tools/db_password=Kz7w-Vb3q.cc") == "tools/db_password=<redacted-secret-1>.cc"


def test_the_time_is_bounded(shown_text: ShownText) -> None:
    before = time.process_time()
    shown_text.shown(f"{TOKEN} {MAIL} " * 1_000_000)
    assert time.process_time() - before < 5


@pytest.mark.parametrize("quoted", [TOKEN, MAIL, f"/home/{MAIL}/x.c", f"https://{TOKEN}:x-oauth{AT}host.org/a.tgz"])
def test_an_error_shows_no_secret_and_no_address_that_it_quotes_of_a_source(quoted: str, shown_text: ShownText) -> None:
    error = ArchiveError("made", f"is a link to {quoted!r}", "a target in the archive", "Correct it.", member="src/k.c")
    shown = shown_error(error, shown_text)

    assert TOKEN not in str(shown)
    assert MAIL not in str(shown)
    assert str(shown).startswith("made: src/k.c: is a link to '")
    assert str(shown).endswith("; expected a target in the archive. Correct it.")
    assert (type(shown), shown.member, str(error)) == (ArchiveError, "src/k.c", str(error))
    assert quoted in str(error)


@pytest.mark.parametrize(
    "found",
    [
        f"sha256 is {'3b0c' * 16}",
        f"sha256 is '{'e3b0c44298fc1c149afbf4c8996fb924' * 2}'",
        f"commit {'0a1b2c3d4e' * 4} is missing in https://github.com/some-body/some-thing.git",
        "/home/" + "ada/work/src.tgz: No such file or directory",
        "'../../etc/passwd' leaves the archive",
        "line 12: field 'password' is not a string",
        "answered 404 at https://files.example.org/packages/9f/1c/3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca49599/a-1.0.tar.gz",
    ],
)
def test_an_error_shows_digests_paths_and_addresses_of_pages_as_they_are(found: str, shown_text: ShownText) -> None:
    assert str(shown_error(ArchiveError("made", found), shown_text)) == f"made: {found}."


def test_no_password_of_a_reason_is_shown() -> None:
    assert shown_words("tried with the password Wx9!kk" + "Pq72zz") == "tried with the password <redacted-secret-1>"
    assert shown_words("the limits were raised") == "the limits were raised"
