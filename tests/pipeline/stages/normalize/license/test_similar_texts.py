"""Similar texts: other words for what is licensed, and in a disclaimer, leave a license what it is; other terms do not."""

import re

import pytest

from pipeline.stages.normalize.license.extents import EXTENTS
from pipeline.stages.normalize.license.texts import recognize
from tests.pipeline.stages.normalize.license.test_read_comments import POLICY, decided, in_block
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
    "binaries alone": BSD.replace("source and binary forms", "binary forms"),
}


@pytest.mark.parametrize(("text", "license"), SAME.values(), ids=SAME)
def test_a_text_with_harmless_differences_is_the_license(text: str, license: str) -> None:
    found = recognize(text)
    assert (found.licenses, found.problem) == ((license,), None)


@pytest.mark.parametrize("text", OTHER.values(), ids=OTHER)
def test_a_text_with_other_terms_is_not(text: str) -> None:
    assert text not in (MIT, BSD, ISC)
    assert recognize(text).problem is not None


GRANTS = {
    "granted": "refused",
    "permitted": "prohibited",
    "granted to anyone": "granted to members",
    "any person": "any customer",
    "any purpose": "no purpose",
    "freely": "for a fee",
    "free of charge": "at a charge",
    "including commercial": "excluding commercial",
    "with or without fee": "with fee",
    "with or without modification": "without modification",
    "and to alter": "and not to alter",
    "must not claim": "must claim",
    "may be": "may not be",
    "may not be": "may not not be",
    "source and binary": "binary",
    "to use": "to read",
    "you can": "members can",
    "as you desire": "as we desire",
}
"""Words of grants and conditions, and what makes another license of a text."""


@pytest.mark.parametrize("license", sorted({*EXTENTS} & {*POLICY["allowed"]}))
def test_a_text_whose_grant_is_another_is_not_kept_as_its_license(license: str) -> None:
    text = " ".join(spdx_text(license).split())
    changes = {text.replace(was, now, 1) for was, now in GRANTS.items() if re.search(rf"\b{was}\b", text)}
    assert changes
    assert [each for each in changes if (license in recognize(each).licenses and recognize(each).problem is None)] == []
    assert [each for each in changes if decided(in_block(each)).drop_reason is None] == []
