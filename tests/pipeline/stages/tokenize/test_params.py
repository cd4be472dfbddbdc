"""Params of tokenize: the path of a vocabulary is in no identity, its name is."""

import pytest
from pydantic import ValidationError

from pipeline.core.params import fingerprint
from pipeline.stages.tokenize.params import TokenizeParams


@pytest.mark.parametrize("given", ["own-300", "./own-300", "/a/b/own-300"])
def test_a_vocabulary_counts_by_its_name_wherever_its_folder_lies(given: str) -> None:
    params = TokenizeParams(vocabulary=given)

    assert (params.vocabulary, params.vocabulary_name) == (given, "own-300")
    assert fingerprint(params) == fingerprint(TokenizeParams(vocabulary="own-300"))
    assert fingerprint(params) != fingerprint(TokenizeParams(vocabulary="own-301"))


@pytest.mark.parametrize("given", ["Own", "own_300", "a/", "a/b c", "a\0/own", ""])
def test_what_is_neither_a_name_nor_a_path_that_ends_in_one_is_refused(given: str) -> None:
    with pytest.raises(ValidationError, match="vocabulary"):
        TokenizeParams(vocabulary=given)
