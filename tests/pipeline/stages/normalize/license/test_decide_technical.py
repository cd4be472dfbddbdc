"""Sentences of headers about the program, which are no licenses, beside those of licensors that have much the same words."""

import pytest

from pipeline.stages.normalize.license.prose.words import as_written
from tests.pipeline.stages.normalize.license.given_evidence import licenses_of
from tests.pipeline.stages.normalize.license.test_texts import MIT

LICENSES = licenses_of({"LICENSE": MIT.encode()}, "MIT")
OF_PROGRAMS = [
    "Reserved for future use.",
    "These registers are reserved for kernel use.",
    "May only be used on ARMv8 CPUs with SVE.",
    "EXPORT_SYMBOL_GPL is treated like EXPORT_SYMBOL.",
    "Prints the GPL notice when started with --version.",
    "Shows the about box with the text of the LGPL.",
    "Threads may not share this object without permission of the scheduler.",
    "Owner must release it.",
    "Copying is prohibited, pass by reference.",
    "Clients may only use one connection at a time.",
    "Confidential computing support for SEV guests.",
    "Experimental: may not be used in production builds.",
    "Diffie-Hellman Key Agreement",
    "Implements the Byzantine Agreement protocol.",
]
OF_LICENSORS = [
    "Reserved for future use by Acme customers.",
    "This software may only be used on ARMv8 chips of Acme.",
    "Recipients must release it under the same license.",
    "Not to be shared without permission of the author.",
    "Please refer to the Qualcomm BSP agreement.",
    "Steamworks SDK access agreement",
    "STMicroelectronics SLA0048",
    "Silicon Labs MSLA applies.",
    "You can't use this for weapons, surveillance or gambling.",
    "비영리 목적으로만 사용할 수 있습니다",
    "Использовать в коммерческих продуктах нельзя.",
]


@pytest.mark.parametrize("words", OF_PROGRAMS)
def test_a_sentence_about_the_program_is_no_license(words: str) -> None:
    assert LICENSES.decide("src/a.c", f"/*\n * {words}\n */\nint a;\n").drop is None


@pytest.mark.parametrize("words", OF_LICENSORS)
def test_a_sentence_of_a_licensor_is_one(words: str) -> None:
    assert LICENSES.decide("src/a.c", f"/*\n * {words}\n */\nint a;\n").drop is not None


@pytest.mark.parametrize("words", ["Licensed CC0 1.0 Universal", "CC0 1.0: no rights reserved"])
def test_a_dedication_in_few_words_is_one(words: str) -> None:
    assert LICENSES.decide("src/a.c", f"/* {words} */\nint a;\n").expression == "CC0-1.0"


def test_a_quoted_word_is_one_of_the_file() -> None:
    text = "/*\n * The owner of this file must not be asked for a licence and it may not be sold.\n */\nint a;\n"
    detail = LICENSES.decide("src/a.c", text).detail
    quoted = detail.partition("`")[2].partition("`")[0]
    assert quoted
    assert quoted in text.lower()
    assert as_written("holder must go", "The Owner\n * must go") == "owner must go"
    assert as_written("not here", "The Owner") == "not here"
    kept = LICENSES.decide(
        "src/a.c", "/*\n * For evaluation only: compute the sum of the values in the table.\n */\nint a;\n"
    )
    assert ": ." not in kept.detail
