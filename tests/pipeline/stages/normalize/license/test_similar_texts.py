"""Similar texts: other words for what is licensed, and in a disclaimer, leave a license what it is; other terms do not."""

import pytest

from pipeline.stages.normalize.license.texts import recognize
from tests.pipeline.stages.normalize.license.test_texts import BSD, MIT, spdx_text

ISC = spdx_text("ISC")

SAME = {
    "the plural in brackets": (BSD.replace("notice,", "notice(s),"), "BSD-3-Clause"),
    "materials for software": (MIT.replace("Software", "Materials").replace("SOFTWARE", "MATERIALS"), "MIT"),
    "a joke in the disclaimer": (ISC.replace("LOSS OF USE", "LOSS OF MIND, USE"), "ISC"),
    "more that is disclaimed": (MIT.replace("OF ANY KIND,", "OF ANY KIND AT ALL, ORAL OR WRITTEN,"), "MIT"),
}
OTHER = {
    "a denied grant": MIT.replace("hereby granted", "not hereby granted"),
    "a smaller grant": MIT.replace("sublicense, ", "").replace("distribute, ", ""),
    "a term after the others": BSD.replace(
        "3. ", "3. The software may only be used with products of its maker.\n4. ", 1
    ),
    "a limit in the disclaimer": MIT.replace("OF ANY KIND,", "OF ANY KIND AND ONLY FOR PERSONAL USE,"),
    "a fee": ISC.replace("with or without fee", "with a fee"),
}


@pytest.mark.parametrize(("text", "license"), SAME.values(), ids=SAME)
def test_a_text_with_harmless_differences_is_the_license(text: str, license: str) -> None:
    found = recognize(text)
    assert (found.licenses, found.problem) == ((license,), None)


@pytest.mark.parametrize("text", OTHER.values(), ids=OTHER)
def test_a_text_with_other_terms_is_not(text: str) -> None:
    assert text not in (MIT, BSD, ISC)
    assert recognize(text).problem is not None
