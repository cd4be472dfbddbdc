"""Author names: which words are a person's, and that they go where a recipe asks for it alone."""

import pytest

from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.addresses.author_names import find_author_names
from pipeline.stages.normalize.scrub.scrub import Scrubber

NAMES = {
    "// Copyright (c) 2020 Jane Doe <jane>": ["Jane Doe"],
    "// Copyright 1999-2004, 2007 J. R. van der Berg. All rights reserved.": ["J. R. van der Berg"],
    " * @author Émile Zola": ["Émile Zola"],
    "// Authors: Ada Lovelace, Charles Babbage and Grace Hopper": ["Ada Lovelace", "Charles Babbage", "Grace Hopper"],
    "/* Written by Ada Lovelace (ada) and Grace M. Hopper. */": ["Ada Lovelace", "Grace M. Hopper"],
    "Signed-off-by: Xu Wei <x>": ["Xu Wei"],
    "© 2011 Gaël Guennebaud": ["Gaël Guennebaud"],
    "// SPDX-FileCopyrightText: 2020 Jane Doe <jane>": ["Jane Doe"],
    "// SPDX-FileContributor: Jane Doe": ["Jane Doe"],
    "// Modified by J. Doe, 2004": ["J. Doe"],
    "// Автор: Иван Петров": ["Иван Петров"],
    "// 作者: 王小明": ["王小明"],
    "// 作者：王小明 <wang>": ["王小明"],
    "// 著者: 山田 太郎": ["山田 太郎"],
    "// 작성자: 김철수": ["김철수"],
    "// Auteur : Jean Dupont": ["Jean Dupont"],
    "// Autor: Jan Nowak": ["Jan Nowak"],
    "// SPDX-FileCopyrightText: 2020 Google LLC": [],
    "// Modified by the compiler": [],
    "// автор неизвестен": [],
    "// 作者保留所有权利并且不承担任何责任": [],
    "// Copyright 2008 Google Inc.": [],
    "// Copyright (c) 2015 The Foo Authors": [],
    "Copyright (C) Free Software Foundation": [],
    "// the copyright notice and this permission notice": [],
    "// Authors of this file": [],
    "THE AUTHOR SPECIFICALLY DISCLAIMS ANY WARRANTIES": [],
    "setAuthor(Text Name)": [],
    "int author = Left Right;": [],
}


@pytest.mark.parametrize(("text", "found"), NAMES.items())
def test_names_of_people_are_found_whole_and_groups_are_not(text: str, found: list[str]) -> None:
    assert [text[each.start : each.end] for each in find_author_names(text)] == found


def test_names_stay_unless_a_recipe_asks() -> None:
    text = "// Copyright (c) 2020 Jane Doe\nint x;\n// Author: Jane Doe\n"
    kept = Scrubber(ScrubParams())
    asked = Scrubber(ScrubParams(redact_author_names=True))
    assert kept.scrub("a.c", text).text == text
    after = asked.scrub("a.c", text)
    assert after.text == text.replace("Jane Doe", "<redacted-author-1>")
    assert after.redactions == {"author": 2}
