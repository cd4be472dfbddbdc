"""The leaves of a tree as columns: where each begins, how deep it lies, which child it is, and of what type.

A leaf owns the blanks before it, so that each byte of a text has one leaf, and a token that begins with the blank before
a name has the name's structure. The blanks at the end belong to the last leaf.
"""

import zlib
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from tree_sitter import Language, Tree

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
    ends, kinds, depths, siblings = _walk(tree)
    ends_L = np.array(ends, dtype=np.int64)
    starts_L = np.concatenate([[0], ends_L[:-1]]) if len(ends_L) else ends_L
    owns_bytes = ends_L > starts_L
    return Leaves(
        starts_L[owns_bytes].astype(np.uint32),
        np.minimum(np.array(depths, dtype=np.int64), MAX_DEPTH)[owns_bytes].astype(np.uint8),
        np.minimum(np.array(siblings, dtype=np.int64), MAX_SIBLING_INDEX)[owns_bytes].astype(np.uint8),
        _buckets(language)[np.array(kinds, dtype=np.int64)][owns_bytes],
    )


def _walk(tree: Tree) -> tuple[list[int], list[int], list[int], list[int]]:
    cursor = tree.walk()
    ends: list[int] = []
    kinds: list[int] = []
    depths: list[int] = []
    siblings: list[int] = []
    above: list[int] = []
    index = 0
    while True:
        while cursor.goto_first_child():
            above.append(index)
            index = 0
        node = cursor.node
        assert node is not None  # the cursor never leaves the tree
        ends.append(node.end_byte)
        kinds.append(node.kind_id)
        depths.append(len(above))
        siblings.append(index)
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return ends, kinds, depths, siblings
            index = above.pop()
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
