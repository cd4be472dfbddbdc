"""Leaves of a tree as columns: start, depth, sibling index and type of each.

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

_NUM_KINDS = 1 << 16


@dataclass(frozen=True)
class Leaves:
    """One entry a leaf. Leaf `i` owns the bytes from `starts[i]` up to `starts[i + 1]`."""

    starts: npt.NDArray[np.uint32]
    depths: npt.NDArray[np.uint8]
    """Nodes above the leaf, at most 255."""
    siblings: npt.NDArray[np.uint8]
    """Index of the leaf among its parent's children, from 0, at most 63."""
    types: npt.NDArray[np.uint8]
    """Bucket of the node's type: CRC-32 of its name modulo 256, the same for all grammars and their versions."""


def leaves_of(tree: Tree, language: Language) -> Leaves:
    """Return the leaves of a tree in the order of the text. Those without bytes, such as missing ones, own nothing."""
    from pipeline.stages.enrich.syntax import tree_loops

    moves = np.frombuffer(_moves(tree, tree_loops.DOWN, tree_loops.UP), dtype=np.uint32)
    return Leaves(*tree_loops.leaf_columns(moves, _buckets(language)))


def _moves(tree: Tree, down: int, up: int) -> "array[int]":
    """Return a walk over all nodes of a tree: `down` to the first child, `up` to the parent, and each leaf's kind and end.

    This loop visits every node of every text, so each step is the cheapest: no node is kept, each number goes to one array
    of 32 bits, and depth and sibling index are computed from the moves.
    """
    cursor = tree.walk()
    moves = array("I")
    put = moves.append
    while True:
        while cursor.goto_first_child():
            put(down)
        leaf: Node = cursor.node  # type: ignore[assignment]  # the cursor never leaves the tree
        put(leaf.kind_id)
        put(leaf.end_byte)
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return moves
            put(up)


@cache
def _buckets(language: Language) -> npt.NDArray[np.uint8]:
    """Return the bucket of each kind of node by its number. The numbers past the grammar's own are errors."""
    buckets = np.full(_NUM_KINDS, _bucket("ERROR"), dtype=np.uint8)
    for number in range(language.node_kind_count):
        buckets[number] = _bucket(language.node_kind_for_id(number) or "")
    return buckets


def _bucket(name: str) -> int:
    return zlib.crc32(name.encode()) % 256
