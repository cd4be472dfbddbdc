"""Include order: the documents of a source, headers before the files that include them."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from pathlib import PurePosixPath

from pipeline.lexing.languages import is_unit, language_of

Graph = Mapping[str, Sequence[str]]


def order_documents(includes: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the paths, each after all that it includes. `includes` holds for each path what it includes, as written.

    A cycle counts as one: its headers come first, then by path. Of what could come next, a source file whose own header
    is placed goes first, so that the two are neighbors where possible; else the smallest path.
    """
    graph = include_graph(includes)
    return _order_cycles(graph, strongly_connected(graph))


def include_graph(includes: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return for each path the paths of the same source that it includes, sorted, without itself and other files."""
    by_name: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(includes):
        by_name[PurePosixPath(path).name].append(path)
    graph = {}
    for path in sorted(includes):
        language = language_of(path)
        rules = language.includes if language else None
        targets = {rules.resolver(path, written, by_name) for written in includes[path] if rules}
        graph[path] = sorted(target for target in targets if target is not None and target != path)
    return graph


def strongly_connected(graph: Graph) -> list[tuple[str, ...]]:
    """Return the cycles of a graph, and each other path alone, included ones first (Kosaraju's algorithm)."""
    users: dict[str, list[str]] = {path: [] for path in graph}
    for path, targets in graph.items():
        for target in targets:
            users[target].append(path)
    seen: set[str] = set()
    order = _depth_first(users, users, set())
    components = (_depth_first(graph, [root], seen) for root in reversed(order))
    return [tuple(sorted(component, key=_headers_first)) for component in components if component]


def _depth_first(graph: Graph, roots: Iterable[str], seen: set[str]) -> list[str]:
    """Return the paths that can be reached from the roots and are not in `seen`, each when all beyond it are, no recursion."""
    finished: list[str] = []
    for root in roots:
        stack = [] if root in seen else [(root, iter(graph[root]))]
        seen.add(root)
        while stack:
            path, targets = stack[-1]
            target = next((target for target in targets if target not in seen), None)
            if target is None:
                finished.append(path)
                stack.pop()
            else:
                seen.add(target)
                stack.append((target, iter(graph[target])))
    return finished


def _order_cycles(graph: Graph, components: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the paths of the components in topological order, with a heap for the ties."""
    component_of = {path: index for index, component in enumerate(components) for path in component}
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for index, component in enumerate(components):
        sorter.add(index, *({component_of[target] for path in component for target in graph[path]} - {index}))
    sorter.prepare()
    ready: list[tuple[tuple[bool, str], int]] = []
    ordered: list[str] = []
    while sorter:
        for index in sorter.get_ready():
            heapq.heappush(ready, (_priority(components[index], graph), index))
        _, index = heapq.heappop(ready)
        ordered += components[index]
        sorter.done(index)
    return ordered


def _priority(component: tuple[str, ...], graph: Graph) -> tuple[bool, str]:
    """Order source files after their own header first, then by path."""
    return (not any(_includes_own_header(path, graph[path]) for path in component), component[0])


def _includes_own_header(path: str, targets: Iterable[str]) -> bool:
    stem = PurePosixPath(path).stem
    return is_unit(path) and any(PurePosixPath(target).stem == stem for target in targets)


def _headers_first(path: str) -> tuple[bool, str]:
    return (is_unit(path), path)
