"""The leaves of a tree as columns: where each begins, how deep it lies, which child it is, and of what type.

A leaf owns the blanks before it, so that each byte of a text has one leaf, and a token that begins with the blank before
a name has the name's structure. The blanks at the end belong to the last leaf.
"""

import zlib
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from tree_sitter import Language, Node, Tree

MAX_DEPTH = 255
MAX_SIBLING_INDEX = 63
_NUM_KINDS = 1 << 16


@dataclass(frozen=True)
class Leaves:
    """One entry a leaf. Leaf `i` owns the bytes from `starts[i]` up to `starts[i + 1]`."""

    starts: npt.NDArray[np.uint32]
    depths: npt.NDArray[np.uint8]
    """Nodes above the leaf, at most MAX_DEPTH."""
    siblings: npt.NDArray[np.uint8]
    """Which child of its parent the leaf is, from 0, at most MAX_SIBLING_INDEX."""
    types: npt.NDArray[np.uint8]
    """Bucket of the node's type: CRC-32 of its name modulo 256, the same for both grammars and all their versions."""


def leaves_of(tree: Tree, language: Language) -> Leaves:
    """The leaves of a tree in the order of the text. Those without bytes, such as missing ones, own nothing."""
    nodes, depths, siblings = _walk(tree)
    ends_L = np.fromiter([node.end_byte for node in nodes], dtype=np.int64, count=len(nodes))
    kinds_L = np.fromiter([node.kind_id for node in nodes], dtype=np.int64, count=len(nodes))
    starts_L = np.concatenate([[0], ends_L[:-1]])
    owns_bytes = ends_L > starts_L
    return Leaves(
        starts_L[owns_bytes].astype(np.uint32),
        np.minimum(np.array(depths), MAX_DEPTH)[owns_bytes].astype(np.uint8),
        np.minimum(np.array(siblings), MAX_SIBLING_INDEX)[owns_bytes].astype(np.uint8),
        _buckets(language)[kinds_L][owns_bytes],
    )


def _walk(tree: Tree) -> tuple[list[Node], list[int], list[int]]:
    """The leaves, their depths and sibling indices. Bound methods and one list a column: this loop sees every node."""
    cursor = tree.walk()
    down, across, up = cursor.goto_first_child, cursor.goto_next_sibling, cursor.goto_parent
    nodes: list[Node] = []
    depths: list[int] = []
    siblings: list[int] = []
    above: list[int] = []
    depth = index = 0
    while True:
        while down():
            above.append(index)
            depth += 1
            index = 0
        nodes.append(cursor.node)  # type: ignore[arg-type]  # the cursor never leaves the tree
        depths.append(depth)
        siblings.append(index)
        while not across():
            if not up():
                return nodes, depths, siblings
            index = above.pop()
            depth -= 1
        index += 1


@cache
def _buckets(language: Language) -> npt.NDArray[np.uint8]:
    """The bucket of each kind of node by its number. The numbers past the grammar's own are errors."""
    buckets = np.full(_NUM_KINDS, _bucket("ERROR"), dtype=np.uint8)
    for number in range(language.node_kind_count):
        buckets[number] = _bucket(language.node_kind_for_id(number) or "")
    return buckets


def _bucket(name: str) -> int:
    return zlib.crc32(name.encode()) % 256
