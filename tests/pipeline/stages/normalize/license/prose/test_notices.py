"""Standard notices in a file's leading comments, and what `decide` makes of them."""

import pytest

from pipeline.stages.normalize.license.prose.notices import find_notices, plus_as_words
from tests.pipeline.stages.normalize.license.given_evidence import licenses_of
from tests.pipeline.stages.normalize.license.test_texts import BSD, CHOICE, MIT, spdx_text

GNU = (
    "This {what} is free software; you can redistribute it and/or modify it under the terms of the GNU {kind}General "
    "Public License as published by the Free Software Foundation; {version} of the License{later}."
)
NOTICES = {
    "Apache": (
        'Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance',
        "Apache-2.0",
    ),
    "Apache of the ASF": (
        'The ASF licenses this file to you under the Apache License, Version 2.0 (the\n * "License"); you may not use this '
        "file except in compliance",
        "Apache-2.0",
    ),
    "LLVM": (
        "Part of the LLVM Project, under the Apache License v2.0 with LLVM Exceptions.",
        "Apache-2.0 WITH LLVM-exception",
    ),
    "an older Apache": ("Licensed under the Apache License, Version 1.1", "Apache-1.1"),
    "MPL": (
        "This Source Code Form is subject to the terms of the Mozilla\n// Public License v. 2.0. If a copy of the MPL",
        "MPL-2.0",
    ),
    "Boost": ("Distributed under the Boost Software License, Version 1.0. (See accompanying file", "BSL-1.0"),
    "Boost after the copyright": (
        "(C) Copyright Somebody 1999. Distributed under the Boost\n//  Software License, Version 1.0.",
        "BSL-1.0",
    ),
    "a license among others": ("Available as open-source under the MIT License", "MIT"),
    "older Boost": (
        "Use, modification and distribution are subject to the\n//  Boost Software License, Version 1.0.",
        "BSL-1.0",
    ),
    "MIT": ("Distributed under the MIT License (http://opensource.org/licenses/MIT)", "MIT"),
    "GPL": (GNU.format(what="program", kind="", version="either version 2", later=""), "GPL-2.0-only"),
    "GPL or later": (
        GNU.format(
            what="program", kind="", version="either version 3", later=", or (at your option) any later version"
        ),
        "GPL-3.0-or-later",
    ),
    "LGPL": (
        GNU.format(
            what="library", kind="Lesser ", version="version 2.1", later=", or (at your option) any later version"
        ),
        "LGPL-2.1-or-later",
    ),
    "AGPL": (GNU.format(what="program", kind="Affero ", version="either version 3", later=""), "AGPL-3.0-only"),
}


@pytest.mark.parametrize(("notice", "expression"), NOTICES.values(), ids=NOTICES)
def test_a_standard_notice_is_read(notice: str, expression: str) -> None:
    assert find_notices(f"// {notice}\n") == (expression,)


@pytest.mark.parametrize(
    "notice",
    [
        "See the Apache License, Version 2.0.",
        "We considered the MIT license here.",
        "The Boost Software License is short.",
    ],
)
def test_a_mention_does_not_count_as_a_notice(notice: str) -> None:
    assert find_notices(f"// {notice}\n") == ()


def headed(*texts: str) -> str:
    return (
        "".join("/*\n" + "".join(f" * {line}\n" for line in text.splitlines()) + " */\n" for text in texts) + "int a;\n"
    )


@pytest.mark.parametrize("path", ["src/a.c", "third_party/x/a.c"])
def test_a_text_in_the_header_is_evidence_of_the_file(path: str) -> None:
    licensed = licenses_of({}).decide(path, headed(BSD))
    assert licensed.drop is None
    assert (licensed.expression, licensed.evidence) == ("BSD-3-Clause", "header")
    assert licensed.detail == f"{path}: the header contains the text of BSD-3-Clause"


def test_texts_and_notices_of_a_header_all_hold() -> None:
    licensed = licenses_of({}).decide("a.c", headed(MIT, NOTICES["MPL"][0]))
    assert licensed.drop is None
    assert (licensed.expression, licensed.license_class) == ("MIT AND MPL-2.0", "tagged")


def test_a_choice_in_a_header_is_taken_and_its_branch_recorded() -> None:
    choice = CHOICE.replace(" in this and the other files of this package", "").replace("this package", "this file")
    choice = choice.replace("this\npackage", "this\nfile")
    found = licenses_of({}).decide("ext/a.c", headed(spdx_text("BSD-2-Clause") + choice))
    assert found.drop is None
    assert (found.expression, found.branch) == ("BSD-2-Clause OR GPL-2.0-or-later", "BSD-2-Clause")


def test_a_copyleft_notice_is_refused_and_is_the_files_own() -> None:
    refusal = licenses_of({}, "MIT").decide("a.c", headed(NOTICES["GPL or later"][0]))
    assert (refusal.drop_reason, refusal.expression, refusal.is_copyleft, refusal.is_own) == (
        "license_refused",
        "GPL-3.0-or-later",
        True,
        True,
    )


def test_a_permissive_text_and_alternatively_another_license_are_a_choice() -> None:
    found = licenses_of({}).decide("a.c", headed(MIT, "Alternatively this file may be used under the GPL."))
    assert (found.drop, found.expression, found.branch) == (None, "MIT OR GPL-1.0-or-later", "MIT")


def test_a_permissive_text_beside_words_of_copyleft_is_quarantined() -> None:
    refusal = licenses_of({}).decide("a.c", headed(MIT, "Parts of this were GPL."))
    assert (refusal.drop_reason, "says `GPL-1.0-or-later`" in refusal.detail) == ("license_quarantined", True)


INHERITED = {
    "a text frees the files below a vendored root": ({"third_party/x/LICENSE": MIT.encode()}, "", "MIT"),
    "two texts both hold": (
        {"third_party/x/LICENSE": MIT.encode(), "third_party/x/COPYING": BSD.encode()},
        "",
        "BSD-3-Clause AND MIT",
    ),
    "a text above the root frees nothing": ({"LICENSE": MIT.encode()}, "MIT", "below the vendored root"),
    "a changed text frees nothing": (
        {"third_party/x/LICENSE": MIT.replace("free of charge", "at a charge").encode()},
        "MIT",
        "nearly MIT: `at a` instead of `free of`",
    ),
    "an unclear text frees nothing": (
        {"third_party/x/LICENSE": (MIT + "Not for commercial use.").encode()},
        "MIT",
        "in addition to MIT it says",
    ),
    "one of two texts is unknown": (
        {"third_party/x/LICENSE": MIT.encode(), "third_party/x/COPYING": b"Ask us."},
        "MIT",
        "not a known license text",
    ),
    "a notice file is no license text": (
        {"third_party/x/LICENSE": MIT.encode(), "third_party/x/NOTICE": b"Thanks."},
        "",
        "MIT",
    ),
}


@pytest.mark.parametrize(("evidence", "declared", "expected"), INHERITED.values(), ids=INHERITED)
def test_a_file_below_a_vendored_root_needs_a_text_of_its_own(
    evidence: dict[str, bytes], declared: str, expected: str
) -> None:
    decided = licenses_of(evidence, declared).decide("third_party/x/src/a.c", "int a;")
    if decided.drop is None:
        assert (decided.expression, decided.evidence) == (expected, "license_text")
    else:
        assert decided.drop_reason == "license_quarantined"
        assert expected in decided.detail


def test_the_text_of_the_whole_source_and_its_package_both_hold() -> None:
    licensed = licenses_of({"LICENSE": BSD.encode()}, "MIT").decide("src/a.c", "int a;")
    assert licensed.drop is None
    assert licensed.expression == "BSD-3-Clause AND MIT"
    assert licensed.detail == "LICENSE: the text of BSD-3-Clause\npin: declared_license = MIT"


def test_a_changed_text_of_the_source_is_quarantined_although_the_package_declares_it() -> None:
    refusal = licenses_of({"LICENSE": BSD.replace("must retain", "may drop").encode()}, "BSD-3-Clause").decide(
        "a.c", "int a;"
    )
    assert refusal.drop_reason == "license_quarantined"
    assert "nearly BSD-3-Clause: `may drop` instead of `must retain`" in refusal.detail


def test_an_unclear_text_beside_a_package_that_names_its_licenses_is_reported_and_kept() -> None:
    unclear = {"lib/COPYING.md": (BSD + "You may choose the other license as well.").encode()}
    licensed = licenses_of(unclear, "MIT AND BSD-3-Clause").decide("lib/a.c", "int a;")
    assert licensed.drop is None
    assert (licensed.evidence, "in addition to BSD-3-Clause it says" in licensed.detail) == ("package", True)
    assert licenses_of(unclear, "MIT").decide("lib/a.c", "int a;").drop


def test_a_long_text_that_is_not_ascii_leaves_the_log_empty(capfd: pytest.CaptureFixture[str]) -> None:
    plus_as_words("é " + spdx_text("CC-BY-4.0") + spdx_text("CECILL-B"))

    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "other", ["the Boost Software License 1.0", "the Boost Software License v1.0", "the MIT License"]
)
def test_a_choice_is_not_lost_behind_a_version_with_a_v(other: str) -> None:
    (found,) = find_notices(f"Licensed under the Apache License v2.0 or {other}, at your option.")
    assert set(found.split(" OR ")) == {"Apache-2.0", "MIT" if "MIT" in other else "BSL-1.0"}
