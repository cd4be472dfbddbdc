"""Include order: the documents of a source, headers before the files that include them."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from pathlib import PurePosixPath
from posixpath import commonpath, dirname, join, normpath

from pipeline.core.languages import is_unit

Graph = Mapping[str, Sequence[str]]


def order_documents(includes: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the paths, each after all that it includes. `includes` holds for each path what it includes, as written.

    A cycle counts as one: its headers come first, then by path. Of what could come next, a source file whose own header
    is placed goes first, so that the two are neighbors where possible; else the smallest path.
    """
    graph = include_graph(includes)
    return _order_cycles(graph, strongly_connected(graph))


def include_graph(includes: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return for each path the paths of the same source that it includes, sorted. Includes of other files are left out."""
    by_name: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(includes):
        by_name[PurePosixPath(path).name].append(path)
    graph = {}
    for path in sorted(includes):
        targets = {resolve(path, written, by_name) for written in includes[path]}
        graph[path] = sorted(target for target in targets if target is not None and target != path)
    return graph


def resolve(path: str, written: str, by_name: Mapping[str, Sequence[str]]) -> str | None:
    """Return the file that `#include written` in `path` means, or None. `by_name` holds the paths of each file name.

    Quotes look beside the file first. Else it is the path that ends in the name and shares most folders with
    `path`; in brackets the name must have a folder, because `<string.h>` is a system header.
    """
    name = normpath(written[1:-1])
    candidates = by_name.get(PurePosixPath(name).name, ())
    beside = normpath(join(dirname(path), name))
    if written.startswith('"') and beside in candidates:
        return beside
    if written.startswith("<") and "/" not in name:
        return None
    suffix = "/" + name.lstrip("./")
    ending = [candidate for candidate in candidates if f"/{candidate}".endswith(suffix)]
    return min(ending, key=lambda candidate: (-_num_shared_folders(path, candidate), candidate), default=None)


def strongly_connected(graph: Graph) -> list[tuple[str, ...]]:
    """Return the cycles of a graph, and each other path alone, included ones first (Tarjan 1972, without recursion)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_paths: list[str] = []
    components: list[tuple[str, ...]] = []
    closed: set[str] = set()
    for root in graph:
        stack = [] if root in numbers else [(root, iter(graph[root]))]
        while stack:
            path, targets = stack[-1]
            if path not in numbers:
                numbers[path] = lowest[path] = len(numbers)
                open_paths.append(path)
            target = next((target for target in targets if target not in closed), None)
            if target is None:
                stack.pop()
                if stack:
                    parent = stack[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[path])
                if lowest[path] == numbers[path]:
                    components.append(_close(path, open_paths, closed))
            elif target in numbers:
                lowest[path] = min(lowest[path], numbers[target])
            else:
                stack.append((target, iter(graph[target])))
    return components


def _close(path: str, open_paths: list[str], closed: set[str]) -> tuple[str, ...]:
    """Return the component of `path`: everything that was opened since."""
    start = open_paths.index(path)
    component = open_paths[start:]
    del open_paths[start:]
    closed.update(component)
    return tuple(sorted(component, key=_headers_first))


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


def _num_shared_folders(path: str, other: str) -> int:
    shared = commonpath([f"/{dirname(path)}", f"/{dirname(other)}"])
    return len(PurePosixPath(shared).parts)
