"""The order of documents: headers before users, whatever the graph looks like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.stages.enrich.include_order import include_graph, order_documents, strongly_connected


def test_a_header_is_before_its_users() -> None:
    includes = {"a.c": ['"z.h"'], "z.h": ['"y.h"'], "y.h": []}

    assert order_documents(includes) == ["y.h", "z.h", "a.c"]


def test_ties_are_broken_by_path() -> None:
    assert order_documents({"c.h": [], "a.h": [], "b.h": []}) == ["a.h", "b.h", "c.h"]


def test_a_source_file_follows_its_header_as_soon_as_it_can() -> None:
    includes = {"src/b.c": ['"b.h"'], "src/a.c": ['"a.h"'], "inc/a.h": [], "inc/b.h": [], "inc/c.h": []}

    assert order_documents(includes) == ["inc/a.h", "src/a.c", "inc/b.h", "src/b.c", "inc/c.h"]


def test_a_cycle_counts_as_one_with_its_headers_first() -> None:
    includes = {
        "a.c": ['"z.h"'],
        "z.h": ['"y.h"'],
        "y.h": ['"a.c"', '"x.h"'],
        "x.h": [],
        "user.c": ['"y.h"'],
    }

    assert order_documents(includes) == ["x.h", "y.h", "z.h", "a.c", "user.c"]


def test_a_file_that_includes_itself_is_not_a_cycle() -> None:
    assert order_documents({"a.h": ['"a.h"'], "b.h": []}) == ["a.h", "b.h"]


def test_a_long_chain_does_not_recurse() -> None:
    num_files = 5_000
    includes = {f"{n:05}.h": [f'"{n + 1:05}.h"'] if n + 1 < num_files else [] for n in range(num_files)}

    assert order_documents(includes) == [f"{n:05}.h" for n in reversed(range(num_files))]


@pytest.mark.parametrize(
    ("user", "written", "found"),
    [
        ("src/a.c", '"b.h"', ["src/b.h"]),
        ("src/a.c", '"../inc/b.h"', ["inc/b.h"]),
        ("src/a.c", '"x/b.h"', ["lib/x/b.h"]),
        ("src/a.c", "<x/b.h>", ["lib/x/b.h"]),
        ("src/a.c", "<b.h>", []),
        ("src/a.c", '"no.h"', []),
        ("src/a.c", '"xb.h"', []),
        ("lib/a.c", '"b.h"', ["lib/x/b.h"]),
        ("a.c", '"b.h"', ["inc/b.h"]),
    ],
)
def test_an_include_means_the_nearest_file_that_ends_in_its_name(user: str, written: str, found: list[str]) -> None:
    files: dict[str, list[str]] = {"src/b.h": [], "inc/b.h": [], "lib/x/b.h": []}

    assert include_graph({**files, user: [written]})[user] == found


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh"), max_size=4)))
def test_every_file_comes_once_and_after_all_it_includes_outside_of_its_cycle(graph: dict[str, list[str]]) -> None:
    includes = {f"{name}.h": [f'"{target}.h"' for target in targets] for name, targets in graph.items()}
    ordered = order_documents(includes)
    reachable = {path: _reachable(path, include_graph(includes)) for path in includes}

    assert sorted(ordered) == sorted(includes)
    for path in includes:
        for target in reachable[path] - {path}:
            if path not in reachable[target]:
                assert ordered.index(target) < ordered.index(path)


@given(st.permutations([("a.h", ['"b.h"']), ("b.h", ['"c.h"', '"a.h"']), ("c.h", []), ("b.c", ['"b.h"']), ("d.c", [])]))
def test_the_order_of_the_input_does_not_matter(items: list[tuple[str, list[str]]]) -> None:
    assert order_documents(dict(items)) == ["c.h", "a.h", "b.h", "b.c", "d.c"]


def test_components_come_with_what_is_included_first() -> None:
    graph = {"a": ["b"], "b": ["c", "a"], "c": [], "d": ["a"]}

    assert strongly_connected(graph) == [("c",), ("a", "b"), ("d",)]


def _reachable(start: str, graph: dict[str, list[str]]) -> set[str]:
    seen: set[str] = set()
    pending = list(graph[start])
    while pending:
        path = pending.pop()
        if path not in seen:
            seen.add(path)
            pending += graph[path]
    return seen
