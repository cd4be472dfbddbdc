"""Call literals: each literal of a call has its position and its depth, whatever brackets and quotes are inside it."""

from pipeline.stages.normalize.scrub.credential_signs.call_literals import arguments_of


def test_positions_count_the_commas_outside_of_inner_brackets() -> None:
    text = 'f(g(1, "a,b"), L"c\\"d", {"e", 2}, R"(raw)", h); "after"'
    found = [(each.value, each.position, each.depth) for each in arguments_of(text, 2)]
    assert found == [("a,b", 0, 1), ('c\\"d', 1, 0), ("e", 2, 1), ("raw", 3, 0)]


def test_a_statement_is_read_to_its_end() -> None:
    assert [each.value for each in arguments_of('"a") -> f("b"); g("c")', 0, closes=False)] == ["a", "b"]
