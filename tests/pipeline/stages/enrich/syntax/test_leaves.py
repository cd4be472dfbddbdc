"""Leaves: each byte has one, and its depth, sibling index and type are those of the tree."""

import zlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_sitter import Node

from pipeline.lexing.languages import CPP, C, Language
from pipeline.stages.enrich.params import SyntaxParams
from pipeline.stages.enrich.syntax.parse import leaves_of_syntax, parse_text
from tests.pipeline.stages.enrich.chunking.test_chunks import FRAGMENTS

TEXT = b"int f(int a)\n{\n  return a  + 1;\n}\n  \n"


def all_leaves(node: Node, depth: int = 0, sibling: int = 0) -> list[tuple[int, int, int, str]]:
    """(end, depth, sibling index, type) of each leaf below a node, by plain recursion."""
    if not node.children:
        return [(node.end_byte, depth, sibling, node.type)]
    return [leaf for index, child in enumerate(node.children) for leaf in all_leaves(child, depth + 1, index)]


@pytest.mark.parametrize("language", [C, CPP])
@settings(max_examples=60)
@given(fragments=st.lists(st.sampled_from(FRAGMENTS), max_size=40))
def test_each_byte_has_the_first_leaf_that_ends_after_it(language: Language, fragments: list[str]) -> None:
    for content in (TEXT, "".join(fragments).encode()):
        syntax = parse_text(content, language, SyntaxParams(blank_unbalanced_branches=False))
        leaves = leaves_of_syntax(syntax)
        assert syntax.tree is not None
        assert leaves is not None
        edges = [*leaves.starts.tolist(), len(content)]
        expected = all_leaves(syntax.tree.root_node)
        for index, byte in enumerate(edges[:-1]):
            _, depth, sibling, kind = next(leaf for leaf in expected if leaf[0] > byte)
            found = (leaves.depths[index], leaves.siblings[index], leaves.types[index])
            assert found == (min(depth, 255), min(sibling, 63), zlib.crc32(kind.encode()) % 256)
        assert edges == sorted(set(edges)) or not content
        assert edges[0] == 0 or not leaves.starts.size


def test_a_leaf_owns_the_blanks_before_it() -> None:
    syntax = parse_text(TEXT, CPP, SyntaxParams())
    leaves = leaves_of_syntax(syntax)

    assert leaves is not None
    edges = [*leaves.starts.tolist(), len(TEXT)]
    pieces = [TEXT[start:end] for start, end in pairwise(edges)]
    assert pieces[:8] == [b"int", b" f", b"(", b"int", b" a", b")", b"\n{", b"\n  return"]
    assert pieces[-4:] == [b"  +", b" 1", b";", b"\n}\n  \n"]


def test_a_late_child_and_a_deep_leaf_have_the_largest_values() -> None:
    wide, deep = b"int a[] = {" + b"1," * 100 + b"};\n", b"int b = " + b"(" * 300 + b"1" + b")" * 300 + b";"
    syntax = parse_text(wide + deep, CPP, SyntaxParams())
    leaves = leaves_of_syntax(syntax)

    assert leaves is not None
    assert (leaves.siblings.max(), leaves.depths.max()) == (63, 255)
