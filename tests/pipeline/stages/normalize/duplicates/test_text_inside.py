"""Text inside other text, as the gate finds it: by characters, whatever layout and order, and no pair that the rule leaves."""

from pathlib import Path
from random import Random

import pytest

from pipeline.core.errors import BlockedError
from pipeline.stages.normalize.duplicates.text_inside import TextInside, find_text_inside
from tests.pipeline.stages.normalize.conftest import Normalize
from tests.support.made.made_amalgamations import INCLUDES, file_of

LIMIT = 0.9


def find(*texts: str, limit: float = LIMIT) -> list[TextInside]:
    return find_text_inside(lambda: (text.encode() for text in texts), limit)


def made(name: str, count: int) -> list[str]:
    return file_of(name, Random(name), count)


def test_a_part_is_found_in_another_layout_and_order_without_its_comments() -> None:
    part, rest = made("part", 6), made("rest", 12)
    text = INCLUDES + "".join(f"/* Function {number}. */\n{each}" for number, each in enumerate(part))
    whole = "namespace all {\r\n" + "".join([*rest[:5], *part[::-1], *rest[5:]]).replace("\n", "\r\n\t") + "}\n"

    (found,) = find(whole, "".join(made("other", 9)), text)
    assert (found.part, found.whole) == (2, 0)
    assert found.share > 0.95


@pytest.mark.parametrize(
    ("before", "is_code"),
    [
        ("/* begun and not ended\n", False),
        ("#include <sys/*.h>\n", False),
        ("/* begun\n// and not ended\n", False),
        ('const char *files = "src/*";\n', True),
        ("const int any = '/*';\n", True),
        ('#include "a/b.h" // of what\n', True),
        ("#include <a/b.h> /* of what */\n", True),
    ],
)
def test_a_text_after_a_comment_without_an_end_is_a_comment(before: str, is_code: bool) -> None:
    part = "".join(made("part", 8))
    bare = part if is_code else part.replace("/*", "").replace("*/", "")

    assert len(find("".join(made("rest", 12)) + before + bare, part)) == is_code


def test_a_text_is_found_once_in_what_has_most_of_it() -> None:
    part, rest = made("part", 8), made("rest", 12)
    assert [(each.part, each.whole) for each in find(*map("".join, (part, [*part[1:], *rest], [*part, *rest])))] == [
        (0, 2)
    ]


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        (made("one", 8), made("two", 16)),
        (made("one", 8), [*made("one", 8), *made("two", 2)]),  # siblings of about one size
        (made("one", 16), [*made("one", 16), *made("two", 8)]),  # half as much again: the rule counts tokens
        (made("one", 8), [*made("one", 8), *made("two", 2) * 5]),  # siblings, one of which repeats itself
        (made("one", 8) * 3, [*made("one", 8), *made("two", 14)]),  # a text that repeats itself and is no smaller
        (made("one", 1), [*made("one", 1), *made("two", 8)]),  # little text
        ([*made("one", 6), *made("two", 3)], [*made("one", 6), *made("three", 16)]),  # two thirds
    ],
    ids=["unrelated", "siblings", "larger siblings", "repetitions", "repetitive", "little", "two thirds"],
)
def test_what_is_less_than_that_is_not_found(part: list[str], whole: list[str]) -> None:
    assert find("".join(part), "".join(whole)) == []


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_that_have_it_the_one_that_has_more_is_named(order: int) -> None:
    part = made("part", 24)
    wholes = [[*part[:23], *made("less", 20)], [*part, *made("more", 20)]][::order]
    (found,) = find(*map("".join, (part, *wholes)))
    assert (found.whole, found.share) == (2 if order == 1 else 1, pytest.approx(1, abs=0.02))


@pytest.mark.parametrize(("num_wholes", "num_found"), [(19, 1), (20, 0)])
def test_what_more_than_twenty_documents_have_is_in_no_pair(num_wholes: int, num_found: int) -> None:
    part = "".join(made("part", 8))
    wholes = (part + "".join(made(str(number), 16)) for number in range(num_wholes))
    assert len(find(*wholes, part)) == num_found


def test_windows_on_disk_find_the_same(tmp_path: Path) -> None:
    texts = ["".join([*made(f"a{number}", 8), *made(f"b{number}", number % 3 * 8)]) for number in range(12)]
    texts += ["".join(made(f"a{number}", 8)) for number in range(0, 12, 2)]
    contents = [text.encode() for text in texts]
    wanted = find_text_inside(lambda: contents, LIMIT)
    assert len(wanted) == 4
    assert find_text_inside(lambda: contents, LIMIT, tmp_path, num_bytes=1 << 30) == wanted
    assert len(list((tmp_path / "windows").iterdir())) == 9


def test_no_text_is_nothing() -> None:
    assert find() == find("", "x") == []


def test_a_document_that_the_rule_leaves_in_another_blocks_by_name(
    normalize: Normalize, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.stages.normalize.duplicates.compare_sources.find_contained", lambda *given: {})
    part, rest = made("part", 8), made("rest", 16)
    result = normalize({"one": {"a.cpp": "".join(part)}, "two": {"b.cpp": "".join([*rest, *part])}}).result

    assert [verdict.gate for verdict in result.verdicts if not verdict.passed] == ["no_text_inside_another_is_left"]
    with pytest.raises(BlockedError, match=r"one a\.cpp in two b\.cpp \(\d+%\)"):
        result.refuse_blocked("made")
