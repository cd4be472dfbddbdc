"""Labeled headers: restrictions are never inherited away, permissive headers have their own name, prose stays."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from license_expression import get_spdx_licensing

from pipeline.stages.normalize.license.decide import LicenseDecision
from pipeline.stages.normalize.license.policy import policy_bytes
from pipeline.stages.normalize.license.prose.comments import Prose
from pipeline.stages.normalize.license.prose.names import spdx_ids
from pipeline.stages.normalize.license.read_comments import _read
from pipeline.stages.normalize.license.text_limits import terms_beyond
from tests.pipeline.stages.normalize.license.given_evidence import licenses_of
from tests.pipeline.stages.normalize.license.test_texts import MIT, spdx_text
from tests.support.counted_calls import count_calls

POLICY: dict[str, Any] = tomllib.loads(policy_bytes().decode())
HEADERS = tomllib.loads((Path(__file__).parent / "headers.toml").read_text())
PROJECT = licenses_of({"LICENSE": MIT.encode()}, "MIT")
CODE = "#include <stdio.h>\n\nint main(void) {\n  return 0;\n}\n"


def in_block(header: str) -> str:
    return "/*\n" + "".join(f" * {line}\n" for line in header.splitlines()) + " */\n" + CODE


def in_lines(header: str) -> str:
    return "".join(f"// {line}\n" for line in header.splitlines()) + CODE


def after_includes(header: str) -> str:
    return CODE.replace("\n\n", "\n\n" + in_lines(header).removesuffix(CODE), 1)


def at_the_end(header: str) -> str:
    return CODE + "\n" + in_block(header).removesuffix(CODE)


def after_what_names_need(header: str) -> str:
    needed = 'using namespace std;\n\nnamespace acme::net {\nclass Socket;\nstatic const char rcsid[] = "$Id$";\n#include <b.h>\n\n'
    return CODE.replace("\n\n", f"\n{needed}{in_lines(header).removesuffix(CODE)}\n", 1)


def after_a_closing_comment(header: str) -> str:
    return f"#ifndef A_H\n#define A_H\n{CODE}#endif  // A_H\n\n{in_block(header).removesuffix(CODE)}"


def after_a_namespace(header: str) -> str:
    return f"namespace acme {{\n{CODE}}}  // namespace acme\n{in_lines(header).removesuffix(CODE)}"


def in_code_named_license(header: str) -> str:
    return f"#include <stdio.h>\n#ifdef LICENSE_TEXT\n{header}\n#endif\n{CODE}"


def in_left_out_code(header: str) -> str:
    return f"#include <stdio.h>\n#if 0\n{header}\n#endif\n{CODE}"


def a_comment_a_line(header: str) -> str:
    return "".join(f"/* {line:70} */\n" for line in header.splitlines()) + CODE


def wrapped(header: str) -> str:
    words, lines = header.split(), [""]
    for word in words:
        lines = [*lines, word] if len(lines[-1]) > 40 else [*lines[:-1], f"{lines[-1]} {word}".strip()]
    return in_block("\n".join(lines))


def in_capitals(header: str) -> str:
    return in_block(header.upper())


SHAPES = [in_block, in_lines, after_includes, at_the_end, in_left_out_code, a_comment_a_line, wrapped, in_capitals]


def decided(text: str) -> LicenseDecision:
    return PROJECT.decide("src/a.c", text)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("header", HEADERS["refused"])
def test_a_restriction_is_not_inherited_away(header: str, shape) -> None:  # type: ignore[no-untyped-def]
    found = decided(shape(header))
    assert found.drop_reason or found.license_class == "tagged", found
    assert len(found.detail) < 2_000


@pytest.mark.parametrize(
    ("expression", "header"), [(license, each) for license, headers in HEADERS["kept"].items() for each in headers]
)
@pytest.mark.parametrize("shape", [in_block, in_lines, wrapped, a_comment_a_line])
def test_a_permissive_header_is_named_by_what_it_says(expression: str, header: str, shape) -> None:  # type: ignore[no-untyped-def]
    found = decided(shape(header))
    assert (found.drop_reason, found.expression, found.evidence) == (None, expression, "header"), found


@pytest.mark.parametrize("shape", [in_block, in_lines, after_includes, at_the_end, a_comment_a_line, wrapped])
@pytest.mark.parametrize("header", HEADERS["prose"])
def test_prose_of_code_stays(header: str, shape) -> None:  # type: ignore[no-untyped-def]
    found = decided(shape(header))
    assert (found.drop_reason, found.expression) == (None, "MIT"), found


@pytest.mark.parametrize(
    "text",
    [
        'static const char copyright[] =\n  "This is free software, covered by the GNU General Public License, and you may\\n"\n'
        '  "change it and distribute copies of it under certain conditions.\\n";\n',
        'constexpr std::string_view kLicense = "LGPL-2.1-or-later";\n',
        'MODULE_LICENSE("GPL v2");\n',
        "#if 0\nFree for academic research.\n#endif\n",
        "#if 0\nECCN 5D002 -- not for release to foreign nationals\n#endif\n",
    ],
)
def test_what_code_states_about_its_license_is_a_header(text: str) -> None:
    assert not is_kept("#include <stdio.h>\n\n" + text + CODE)


SPDX_IDS = [each for each in spdx_ids() if "-" in each and not re.match("[AL]?GPL-", each)]


@pytest.mark.parametrize("form", ["License: {}", "@license {}", "This file is distributed under the terms of the {}."])
def test_an_identifier_is_the_license_that_it_names_and_not_a_part_of_it(form: str) -> None:
    found = {each: decided(in_block(form.format(each))) for each in SPDX_IDS}

    assert len(found) >= 450
    kept = {each: decision.expression for each, decision in found.items() if decision.drop_reason is None}
    assert {each: license for each, license in kept.items() if license != str(get_spdx_licensing().parse(each))} == {}
    assert set(POLICY["allowed"]) & set(SPDX_IDS) <= kept.keys()


NAMED_AS_IN_NOTICES = [line for line in HEADERS["technical"] if line != "仅供内部调用"]


def within_a_function(comment: str) -> str:
    return CODE.replace("  return", f"  // {comment}\n  return")


def above_a_function(comment: str) -> str:
    return CODE.replace("int main", f"int first;\n\n/// {comment}\nint main")


def test_technical_comments_of_any_language_stay() -> None:
    shapes = (within_a_function, above_a_function)
    assert [
        (line, shape.__name__) for line in NAMED_AS_IN_NOTICES for shape in shapes if not is_kept(shape(line))
    ] == []


TECHNICAL_HEADERS = [
    "אסור לקרוא לפונקציה מתוך פסיקה",
    "अनुक्रम को फिर से न बुलाएँ",
    "ห้ามเรียกจากอินเทอร์รัปต์",
    "Ei saa kutsua keskeytyksestä",
    "Nem hívható megszakításból",
    "Jangan panggil dari interupsi",
    "Không gọi hàm này từ ngắt",
    "不要在中斷中呼叫",
    "Не викликати з переривання",
    "لا تستدعِ هذه الدالة من المقاطعة",
    "Terms: see the sum below.",
    "Лише для читання з головного потоку",
    "Μόνο για ανάγνωση",
    "केवल पढ़ने के लिए",
    "จากเธรดหลักเท่านั้น",
    "Chỉ gọi từ luồng chính.",
    "Csak a fő szálból hívható.",
    "Hanya dari utas utama.",
    "Tylko dla wątku głównego.",
    "The lease expires after ten ticks.",
    "Forks are joined by the pool.",
    "By arrangement of the bits: low to high.",
]


@pytest.mark.parametrize("shape", [in_block, in_lines, after_includes, at_the_end])
def test_technical_headers_of_any_language_stay(shape) -> None:  # type: ignore[no-untyped-def]
    assert [line for line in TECHNICAL_HEADERS if not is_kept(shape(line))] == []


GRANTING_HEADERS = [
    "No rights reserved.",
    "You can do whatever you want with this file.",
    "Feel free to use this code in any project, commercial or not.",
    "Distributed under the license in LICENSE at the top of the tree.",
]


@pytest.mark.parametrize("shape", [in_block, in_lines, after_includes])
def test_headers_that_grant_everything_or_name_the_file_of_the_license_inherit_it(shape) -> None:  # type: ignore[no-untyped-def]
    assert [line for line in GRANTING_HEADERS if not is_kept(shape(line))] == []
    assert not is_kept(shape("You can do whatever you want with this file, except selling it."))


def in_a_description(header: str) -> str:
    return in_block(f"a.cpp - reads tables\n\n{header}\n\nAuthor: Somebody")


def test_a_short_line_is_not_inherited_away() -> None:
    shapes = [in_block, in_lines, after_includes, at_the_end, in_a_description, in_code_named_license]
    shapes += [after_what_names_need, after_a_closing_comment, after_a_namespace]
    found = [(line, shape.__name__) for line in HEADERS["lines"] for shape in shapes if is_kept(shape(line))]
    assert found == []


def test_a_restriction_in_free_words_is_not_inherited_away() -> None:
    shapes = [in_block, in_lines, after_includes, at_the_end]
    found = [(words, shape.__name__) for words in HEADERS["free_words"] for shape in shapes if is_kept(shape(words))]
    assert found == []
    shapes += [after_what_names_need, after_a_closing_comment, after_a_namespace]
    refused = [words for words in HEADERS["free_prose"] for shape in shapes if not is_kept(shape(words))]
    assert refused == []


def test_a_line_divided_by_a_hyphen_or_spaced_out_is_read() -> None:
    headers = ["distri-\nbution is prohibited", "C O N F I D E N T I A L", "not for commer-\ncial use"]
    assert [header for header in headers if is_kept(in_block(header))] == []


def test_what_speaks_about_the_program_stays() -> None:
    found = [line for line in HEADERS["short_prose"] for shape in (in_block, in_lines) if not is_kept(shape(line))]
    found += [line for line in HEADERS["code"] if not is_kept(CODE.replace("  return", f"  // {line}\n  return"))]
    assert found == []


def test_alternatives_in_one_comment_are_a_choice() -> None:
    texts = f"ALTERNATIVE A - MIT License\n{MIT}\n------\nALTERNATIVE B - Public Domain\n{spdx_text('Unlicense')}"
    said = f"/* table.h - v1.2\n\nThis software is available under 2 licenses -- choose whichever you prefer.\n------\n{texts}*/\n"
    assert decided(CODE + said).expression == "MIT OR Unlicense"
    assert is_kept(CODE + said)


@pytest.mark.parametrize(
    "sentence",
    [
        "This class is for internal use only, you should use Clock instead.",
        "This utility is internal-only.",
        "The following macros are for the library's INTERNAL use only.",
        "The prefix is intended for testing purposes only.",
    ],
)
def test_what_an_interface_is_for_is_no_restriction_beside_a_license(sentence: str) -> None:
    documented = CODE.replace("int main", f"// {sentence}\nint main")
    assert is_kept(in_block("License: MIT").removesuffix(CODE) + documented)
    assert not is_kept(in_block("For internal use only."))
    assert not is_kept(in_block(f"License: MIT\n\n{sentence} Do not distribute."))


@pytest.mark.parametrize(
    ("told", "restricting"),
    [
        (
            "He used a pen name: his employer, who regarded the method as a trade secret.",
            "This method is a trade secret.",
        ),
        ("Pat goes from door to door, selling bars, until five bars have been sold.", "It must not be sold."),
        (
            "Common properties of distributions, in terms of other properties. Make use of this header.",
            "Distribution under the terms of the contract.",
        ),
        (
            "I would like to thank J. Roe, who distributes it in an open source licence.",
            "It is not under an open source license.",
        ),
        (
            "For the table see the paper. Reproduced with permission of the author.",
            "Use it with permission of the author.",
        ),
        ("Not copyrighted -- provided to the public domain", "Not copyrighted -- provided to members only"),
    ],
)
def test_what_a_header_tells_of_others_stays_beside_a_license(told: str, restricting: str) -> None:
    assert is_kept(in_block(f"License: MIT\n\n{told}"))
    assert not is_kept(in_block(f"License: MIT\n\n{restricting}"))


def test_a_clause_about_endorsement_may_name_the_author_alone() -> None:
    text = " ".join(spdx_text("BSD-3-Clause").split())
    worded = re.sub(
        "Neither the name of .*? nor the names of its contributors",
        "Neither the author nor the names of any contributors",
        text,
    )
    assert worded != text
    assert decided(in_block(worded)).expression == "BSD-3-Clause"


def is_kept(text: str) -> bool:
    found = decided(text)
    return found.drop_reason is None and found.license_class != "tagged"


@pytest.mark.parametrize("name", ["GNU General Public License ", "Licensed under the Apache License, Version 2.0 "])
def test_a_text_of_names_alone_is_read_once(name: str) -> None:
    """Four times as many names are four times the work: sixteen times it hung a build over a LICENSE of 100 kB."""

    def calls(number: int) -> int:
        text = name * number
        return count_calls(lambda: (_read(Prose(text, True)), terms_beyond.__wrapped__(text)))

    calls(2)  # what is made once
    assert calls(160) < 6 * calls(40)
