"""The leaves of a tree as columns: where each begins, how deep it lies, which child it is, and of what type.

A leaf owns the blanks before it, so that each byte of a text has one leaf, and a token that begins with the blank before
a name has the name's structure. The blanks at the end belong to the last leaf.
"""

import zlib
from array import array
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from tree_sitter import Language, Node, Tree

MAX_DEPTH = 255
MAX_SIBLING_INDEX = 63
_NUM_KINDS = 1 << 16
_DEPTH_SHIFT = 27
_SIBLINGS = (1 << _DEPTH_SHIFT) - 1
"""More siblings than a text that is parsed can have."""


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
    ends_L, kinds_L, places_L = np.frombuffer(_walk(tree), dtype=np.uint64).reshape(-1, 3).T
    starts_L = np.zeros_like(ends_L)
    starts_L[1:] = ends_L[:-1]
    owns_bytes = ends_L > starts_L
    if not owns_bytes.all():
        starts_L, kinds_L, places_L = starts_L[owns_bytes], kinds_L[owns_bytes], places_L[owns_bytes]
    return Leaves(
        starts_L.astype(np.uint32),
        np.minimum(places_L >> _DEPTH_SHIFT, MAX_DEPTH).astype(np.uint8),
        np.minimum(places_L & _SIBLINGS, MAX_SIBLING_INDEX).astype(np.uint8),
        _buckets(language)[kinds_L],
    )


def _walk(tree: Tree) -> "array[int]":
    """End, kind and place of each leaf, one after another; a place is the depth shifted, and the sibling index.

    This loop sees every node of every text: one array of numbers, no node is kept, and each call in the form that costs least.
    """
    cursor = tree.walk()
    found = array("Q")
    put = found.append
    above: list[int] = []
    place = 0
    while True:
        while cursor.goto_first_child():
            above.append(place)
            place = (place | _SIBLINGS) + 1  # one deeper, the first child
        node: Node = cursor.node  # type: ignore[assignment]  # the cursor never leaves the tree
        put(node.end_byte)
        put(node.kind_id)
        put(place)
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return found
            place = above.pop()
        place += 1


@cache
def _buckets(language: Language) -> npt.NDArray[np.uint8]:
    """The bucket of each kind of node by its number. The numbers past the grammar's own are errors."""
    buckets = np.full(_NUM_KINDS, _bucket("ERROR"), dtype=np.uint8)
    for number in range(language.node_kind_count):
        buckets[number] = _bucket(language.node_kind_for_id(number) or "")
    return buckets


def _bucket(name: str) -> int:
    return zlib.crc32(name.encode()) % 256
