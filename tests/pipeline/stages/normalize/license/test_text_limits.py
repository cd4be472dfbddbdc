"""Limits beside recognized texts: a sentence of a license file that limits makes it unclear, and thanks and lists do not."""

import pytest

from pipeline.stages.normalize.license.text_limits import (
    certain_limit,
    limit_of_sentence,
    names_in,
    speaks_of_others,
    terms_beyond,
    whole_sentences,
)
from tests.pipeline.stages.normalize.license.given_evidence import licenses_of
from tests.pipeline.stages.normalize.license.test_texts import MIT, spdx_text

CODE = "int a;\n"
BUSL = """License text copyright (c) 2020 MariaDB Corporation Ab, All Rights Reserved.

Parameters

Licensor:             Foo Ltd.
Licensed Work:        Foo 3.0
Additional Use Grant: You may make production use of the Licensed Work, provided your use
                      does not include offering it to third parties as a service.
Change Date:          2027-01-01
Change License:       {}

Terms

The Licensor hereby grants you the right to copy, modify, create derivative works, redistribute, and
make non-production use of the Licensed Work. The Licensor may make an Additional Use Grant, above,
permitting limited production use.

Effective on the Change Date, or the fourth anniversary of the first publicly available distribution
of a specific version of the Licensed Work under this License, whichever comes first, the Licensor
hereby grants you rights under the terms of the Change License, and the rights granted in the
paragraph above terminate.

If your use of the Licensed Work does not comply with the requirements currently in effect as
described in this License, you must purchase a commercial license from the Licensor, its affiliated
entities, or authorized resellers, or you must refrain from using the Licensed Work.
"""
LIMITING = [
    "This is proprietary software.",
    "The author forbids any use by companies.",
    "Die kommerzielle Nutzung ist untersagt.",
    "Alle Rechte vorbehalten. Nutzung nur nach schriftlicher Genehmigung.",
    "Tous droits réservés. Usage interdit sans accord écrit.",
    "Использование запрещено.",
    "無断転載・複製を禁じます。",
    "Uso exclusivo con fines académicos.",
    "This file contains trade secrets of Acme Inc.",
    "Trial version: expires after 30 days.",
    "Copyright 2020 Foo. Proprietary and confidential.",
    "This grant is void for any use in weapons.",
    "The permission is limited to educational institutions.",
    "Employees of Initech are excluded from this grant.",
    "No part of this file may be reproduced in any form.",
    "License: commercial",
    "C O N F I D E N T I A L",
    "This document is proprietary to Globex and must not be disclosed to third parties.",
    "Requires a purchased seat of FooStudio.",
    "Ce logiciel est la propriété exclusive de Thales.",
]
NAMING = [
    "Licensed under the Business Source License 1.1.",
    "This library is distributed under the terms of the GNU Affero General Public License.",
    "Distributed under the CC BY-NC-ND 3.0 license",
    "Confluent Community License",
    "AGPL-3.0-only",
    "CC BY-NC-SA",
    "Commons Clause",
    "Use of this software is governed by the Business Source License included in LICENSE.BSL.",
    "Foo is dual licensed: commercial or GPL-3.0.",
]
SOUND = [
    "Please also refer to the file CONTRIBUTING.md, which clarifies licensing of external contributions to this project.",
    "The software and the documentation in this project are copyrighted by A. Author and the contributors.",
    "This product includes software developed by J. Roe, which is under the Apache License 2.0.",
    "An additional intellectual property rights grant can be found in the file PATENTS.",
    "Contributions to this software are made under the terms of this license.",
    "Copyright (c) 2013 The Foo team. All rights reserved.",
    "Thanks to everyone who helped. See AUTHORS for the list.",
    "This library uses FFTW, which is under the GPL.",
    "It may be combined with the GPL, as can be seen here:\nhttp://www.gnu.org/licenses/old-licenses/gpl-2.0-faq.html#GPLWrapper",
    "This license is approved by the OSI and FSF as GPL-compatible.",
    "In other words: do what you like with it.",
    "Patches that were taken from the Foo project are licensed as:",
    "The files in third_party are covered by their own licenses.",
    "This support library is itself covered by the above license.",
    "END OF TERMS AND CONDITIONS",
    "You can also use it under the Apache License 2.0.",
    "You may choose either of MIT or GPL-2.0.",
]
ADDED = [
    "Exception: the directory src/ is under GPL-3.0.",
    "Parts of this library (src/) are Copyright Acme and under a commercial license.",
    "Files in src/ are licensed under the AGPL.",
    "The files in src/ are covered by the GNU GPL, version 3.",
    "The src directory is distributed under GPL version 2.",
    "Some of the files are under a proprietary license.",
    "The module crypto is available under the LGPL only.",
    "Additionally, redistributions must mail a postcard to the author.",
    "Redistributors must send a copy of their changes to the author.",
    "Products that use this must display our logo.",
    "In addition, users have to register on our web site.",
]
OF_OTHER_PARTS = [
    "Documentation in docs/ is licensed under CC-BY-4.0.",
    "Files in tests/ are covered by the GPL.",
    "The directory third_party/readline is under the GNU General Public License.",
    "Components in third_party/fftw are under the GPL.",
    "Some files are under the Apache License 2.0.",
    "Parts of this library are based on work by Jane Roe.",
    "Foo and its tools in bin/ are licensed under BSD-2-Clause or LGPL-2.1-or-later.",
    "The src directory contains the sources.",
    "Redistributions must retain this notice.",
]
TITLES = [
    "GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007",
    "GPLv3",
    "Elastic License 2.0",
    "ACME Commercial License",
    "BSD License",
]


def decided(text: str, declared: str = "MIT", name: str = "LICENSE") -> str | None:
    given = {"LICENSE": MIT.encode()} | {name: text.encode()}
    return licenses_of(given, declared).decide("src/a.c", CODE).drop_reason


@pytest.mark.parametrize("words", [*LIMITING, *NAMING])
def test_what_limits_beside_the_license_makes_it_unclear(words: str) -> None:
    assert decided(f"{MIT}\n\n{words}\n") == "license_quarantined"
    assert decided(f"{words}\n") is not None


@pytest.mark.parametrize("words", NAMING)
def test_a_license_that_another_file_names_is_one_of_the_work_too(words: str) -> None:
    assert decided(f"{words}\n", name="COPYING") is not None


@pytest.mark.parametrize("words", LIMITING)
def test_a_limit_in_another_file_or_in_a_readme_is_one_too(words: str) -> None:
    assert decided(f"{words}\n", name="COPYRIGHT") == "license_quarantined"
    assert decided(f"# Foo\n\n## License\n\n{words}\n", name="README.md") == "license_quarantined"


@pytest.mark.parametrize("words", SOUND)
def test_what_says_no_more_than_the_license_leaves_it(words: str) -> None:
    assert decided(f"{MIT}\n\n{words}\n") is None


@pytest.mark.parametrize("words", ADDED)
def test_another_license_of_a_part_or_a_condition_makes_a_license_text_unclear(words: str) -> None:
    assert decided(f"{MIT}\n\n{words}\n") == "license_quarantined"
    assert decided(f"{words}\n\n{MIT}\n") == "license_quarantined"


@pytest.mark.parametrize("words", OF_OTHER_PARTS)
def test_what_is_no_part_of_the_source_has_its_own_license(words: str) -> None:
    assert decided(f"{MIT}\n\n{words}\n") is None


@pytest.mark.parametrize("title", TITLES)
def test_a_title_of_another_license_is_part_of_the_text(title: str) -> None:
    assert decided(f"{title}\n\nCopyright (c) 2020 Foo\n\n{MIT}") == "license_quarantined"


@pytest.mark.parametrize("title", ["The MIT License (MIT)", "Expat License", "MIT License\n\n\n2020, J. Roe"])
def test_a_title_of_its_own_is_no_other_license(title: str) -> None:
    assert decided(f"{title}\n\n{MIT}") is None


@pytest.mark.parametrize("later", ["MIT", "Apache License, Version 2.0", "GPL Version 2.0 or later"])
@pytest.mark.parametrize("declared", ["MIT", "Apache-2.0", "NOASSERTION"])
def test_what_a_license_changes_to_later_does_not_hold_today(later: str, declared: str) -> None:
    parameters = BUSL.format(later).partition("Terms")[0]
    for text in (BUSL.format(later), f"Business Source License 1.1\n\n{parameters}", parameters):
        assert licenses_of({"LICENSE": text.encode()}, declared).decide("src/a.c", CODE).drop is not None
    found = licenses_of({"x/LICENSE": parameters.encode()}, declared).decide("x/a.c", CODE)
    assert found.expression != "MIT"
    in_header = licenses_of({"LICENSE": MIT.encode()}, "MIT").decide("a.c", f"/*\n{parameters}*/\n{CODE}")
    assert (in_header.drop_reason, in_header.expression) == ("license_refused", "BUSL-1.1")


def test_an_unknown_text_that_limits_contradicts_a_pin_whose_license_would_be_known() -> None:
    text = (
        "Foo License\n\n"
        + "You can run it where you like, and look at what it does there. " * 30
        + "Members alone may copy it.\n"
    )
    assert licenses_of({"LICENSE": text.encode()}, "MIT").decide("a.c", CODE).drop_reason == "license_quarantined"
    assert licenses_of({"LICENSE": text.encode()}, "CECILL-B").decide("a.c", CODE).drop_reason != "license_quarantined"
    assert licenses_of({"LICENSE": b"see the web\n"}, "MIT").decide("a.c", CODE).drop_reason is None


def test_terms_are_the_limit_and_the_names_beside_the_texts() -> None:
    found = terms_beyond(f"{MIT}\n\nLicensed under the EUPL, Version 1.2. It must not be sold.\n")
    assert found.named == ("MIT", "EUPL-1.2")
    assert found.limit is not None
    assert terms_beyond(spdx_text("Apache-2.0")).limit is None


def test_a_sentence_limits_by_a_word_or_by_its_grammar() -> None:
    assert limit_of_sentence("This is proprietary software.") is not None
    assert certain_limit("This software must not be sold.") is not None
    assert certain_limit("Copyright 2020 Foo. All rights reserved.") is None
    assert limit_of_sentence("Thanks to all.") is None
    assert speaks_of_others("Some parts are by others.")
    assert not speaks_of_others("This is free.")
    assert not speaks_of_others("You may not include this in other works.")
    assert not speaks_of_others("Mail sales@example.com first.")
    assert speaks_of_others("Either the GPL or MIT.")
    assert not speaks_of_others("Either the GPL or nothing.")
    assert names_in("GPL-3.0-only") == ("GPL-3.0-only",)
    assert names_in("It is not clear to me whether anybody has ever heard of Commons Clause") != ()
    assert names_in("Anybody here who has heard of the Commons Clause by now, dear reader?") == ()
    assert list(whole_sentences("License: MIT. It is.")) == ["License: MIT.", "It is."]
    assert list(whole_sentences("License:")) == ["License:"]


def test_the_notice_of_one_license_of_a_choice_is_about_no_part() -> None:
    notice = "you can redistribute it and/or modify it under the terms of the GNU Lesser General Public License."
    text = f"Foo is licensed under MIT OR LGPL-2.1-or-later.\n\n{MIT}\n\nThis library is free software; {notice}\n"
    assert terms_beyond(text).limit is None
