"""Leaves that begin within a token, and children that no tree has, are seen; those of real trees are none of them."""

import pytest

from pipeline.build.oracles.audited_leaves import gaps_of, num_misplaced_siblings, torn_leaves
from pipeline.build.oracles.code_marks import marks_of
from pipeline.stages.enrich.params import SyntaxParams
from pipeline.stages.enrich.syntax.grammar import languages_to_parse
from pipeline.stages.enrich.syntax.parse import leaves_of_syntax, parse_text

CODE = b"""\
// The first.
#include <vector>

/* One */ int price(list *a) { return a->size == 12 && a[0] != 'x' ? 1.5e-3 : f("a\\n b", u8"c"); }
#define B(x) \\
    x

template <class... T> struct A<B<T...>> : C { A() = default; };  \n// The last.
auto raw = R"x( a b )x";
"""


def leaves(text: bytes) -> tuple[list[int], list[int], list[int]]:
    found = leaves_of_syntax(parse_text(text, languages_to_parse("a.cpp", text)[0], SyntaxParams()))
    assert found is not None
    return found.starts.tolist(), found.depths.tolist(), found.siblings.tolist()


def test_leaves_of_a_tree_begin_at_tokens_and_are_children_of_it() -> None:
    starts, depths, siblings = leaves(CODE)

    assert list(torn_leaves(starts, CODE, marks_of(CODE))) == []
    assert not num_misplaced_siblings(depths, siblings, gaps_of(starts, CODE))


@pytest.mark.parametrize("step", [-1, 1])
def test_most_leaves_that_begin_a_byte_elsewhere_are_seen(step: int) -> None:
    starts, _, _ = leaves(CODE)
    last = CODE.index(b"\n#define")
    # Of a leaf of one character two begin at one place then, which is no place within a token.
    moved = [start + step for start in starts if CODE.index(b"/* One") < start < last and start + step not in starts]

    assert len(list(torn_leaves(moved, CODE, marks_of(CODE)))) > 0.8 * len(moved)


@pytest.mark.parametrize(
    ("text", "place"),
    [(b"int a;", 1), (b"int a;", 4), (b"a->b", 2), (b"/* a b */ c", 5), (b'"abc"', 2)],
)
def test_each_kind_of_place_within_a_token_is_seen(text: bytes, place: int) -> None:
    assert list(torn_leaves([0, place], text, marks_of(text))) == [place]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"int a;", 3),
        (b"a->b", 1),
        (b"/* a b */ c", 9),
        (b'"abc"', 1),
        (b'"abc"', 4),
        (b'"a\\nb"', 4),
        (b"#if 1\n\nb", 7),
        (b"// a\nint b;", 5),
        (b"3ms", 1),
        (b"int a", 5),
        (b"int a; /* b */ ", 5),
    ],
)
def test_places_between_tokens_are_none_of_them(text: bytes, place: int) -> None:
    assert list(torn_leaves([0, place], text, marks_of(text))) == []


@pytest.mark.parametrize("step", [-1, 1])
def test_another_index_of_most_leaves_is_of_no_tree(step: int) -> None:
    starts, depths, siblings = leaves(CODE)
    gaps = gaps_of(starts, CODE)
    places = [place for place, index in enumerate(siblings) if index + step >= 0]
    seen = [
        num_misplaced_siblings(depths, [*siblings[:place], siblings[place] + step, *siblings[place + 1 :]], gaps)
        for place in places
    ]

    assert sum(seen) > 0.5 * len(seen)


@pytest.mark.parametrize(
    ("depths", "siblings", "are_some"),
    [
        ([1, 1, 1], [0, 1, 2], True),
        ([1, 1, 1], [0, 1, 3], False),
        ([1], [1], False),
        ([1, 2], [0, 1], False),
        ([2, 2, 1], [0, 1, 1], True),
        ([2, 2, 1], [0, 1, 2], False),
        ([2, 2, 2], [0, 0, 1], True),
        ([2, 2, 1], [0, 0, 2], True),
        ([1, 1, 1], [62, 63, 63], False),
        ([1, 1, 1], [0, 1, 1], False),
        ([1] * 66, [*range(64), 63, 63], True),
        ([1] * 66, [*range(64), 63, 62], False),
        ([255, 255], [0, 9], True),
        ([1] * 65, [*range(65)], False),
        ([1, 1], [0, 63], False),
        ([2, 2, 3, 2], [0, 1, 0, 1], True),
    ],
)
def test_children_of_one_parent_follow_each_other(depths: list[int], siblings: list[int], are_some: bool) -> None:
    assert (num_misplaced_siblings(depths, siblings, [False] * len(depths)) == 0) == are_some


@pytest.mark.parametrize(("text", "is_gap"), [(b"a }", True), (b"a\n#endif", True), (b"a )", False), (b"; }", False)])
def test_a_semicolon_may_be_missing_after_a_word(text: bytes, is_gap: bool) -> None:
    assert gaps_of([1], text) == [is_gap]
    assert (num_misplaced_siblings([1, 1], [0, 2], [False, is_gap]) == 0) == is_gap
    assert num_misplaced_siblings([1, 1], [0, 3], [False, is_gap])


def test_a_semicolon_may_be_missing_before_a_parent_whose_first_child_a_leaf_is() -> None:
    depths, siblings = [1, 2, 1], [0, 0, 3]

    assert num_misplaced_siblings(depths, siblings, [False, True, False]) == 0
    assert num_misplaced_siblings(depths, siblings, [False] * 3) == 1
