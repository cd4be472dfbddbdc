"""The syntax lane: one text to its tree, the share of it that did not parse, and the files that it includes.

Every loop over a tree is iterative: a hostile text nests a hundred thousand levels deep.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

import tree_sitter_c
import tree_sitter_cpp
from tree_sitter import Language, Node, Parser, Point, Tree

from pipeline.enrich.branches import ByteRange, unbalanced_branches, with_spaces
from pipeline.enrich.params import SyntaxParams

OPERATIONS_PER_CALLBACK = 100
"""How often tree-sitter asks whether to go on (`OP_COUNT_PER_PARSER_CALLBACK_CHECK` in its lib/src/parser.c)."""
_NUM_BYTES_READ = 65_536
"""What tree-sitter gets at once. It reads again after errors: whole rests would cost the square of the length."""
_LEAST_NUM_BYTES = 1_000
"""Shorter texts get the operations of this many bytes: their first callback comes late."""
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*(<[^>\n]+>|\"[^\"\n]+\")", re.MULTILINE)


class Grammar(StrEnum):
    """The language that a text is parsed as."""

    C = "c"
    CPP = "cpp"


_LANGUAGES = {Grammar.C: Language(tree_sitter_c.language()), Grammar.CPP: Language(tree_sitter_cpp.language())}


@dataclass(frozen=True)
class Syntax:
    """What parsing made of a text."""

    content: bytes
    tree: Tree | None
    """None where a limit was hit; all bytes count as errors then."""
    num_error_bytes: int
    num_missing_nodes: int
    includes: tuple[str, ...]
    """Included files in order, as written, with their quotes or brackets."""
    limit: str = ""
    """The limit that was hit: a field of SyntaxParams."""
    blanked: tuple[ByteRange, ...] = ()
    """What was parsed as blanks, in order and apart: branches of #if out of balance."""

    @property
    def error_fraction(self) -> float:
        """Bytes under ERROR nodes among all, in 0-1."""
        return self.num_error_bytes / max(1, len(self.content))


def grammar_of(path: str) -> Grammar:
    """C for `.c`, C++ for all else: what is C in a `.h` parses as C++ nearly always, and not the other way round."""
    return Grammar.C if path.endswith(".c") else Grammar.CPP


def read_syntax(content: bytes, grammar: Grammar, params: SyntaxParams) -> Syntax:
    """Parse a text; where it has errors, without the branches of #if that do not balance, if that leaves fewer."""
    if len(content) > params.max_num_bytes:
        return _without_tree(content, "max_num_bytes")
    tree = _parse(content, grammar, params)
    if tree is None:
        return _without_tree(content, "max_operations_per_byte")
    includes = _includes(content, tree.root_node)
    syntax = Syntax(content, tree, *_count_errors(tree.root_node), includes)
    if syntax.num_error_bytes + syntax.num_missing_nodes and params.blank_unbalanced_branches:
        return _with_blanked_branches(syntax, grammar, params)
    return syntax


def _with_blanked_branches(syntax: Syntax, grammar: Grammar, params: SyntaxParams) -> Syntax:
    blanked = unbalanced_branches(syntax.content)
    tree = _parse(with_spaces(syntax.content, blanked), grammar, params) if blanked else None
    if tree is None:
        return syntax
    num_error_bytes, num_missing_nodes = _count_errors(tree.root_node)
    if (num_error_bytes, num_missing_nodes) >= (syntax.num_error_bytes, syntax.num_missing_nodes):
        return syntax
    return replace(
        syntax, tree=tree, num_error_bytes=num_error_bytes, num_missing_nodes=num_missing_nodes, blanked=tuple(blanked)
    )


def _without_tree(content: bytes, limit: str) -> Syntax:
    includes = tuple(match[1].decode() for match in _INCLUDE.finditer(content))
    return Syntax(content, None, len(content), 0, includes, limit)


def _parse(content: bytes, grammar: Grammar, params: SyntaxParams) -> Tree | None:
    """The tree, or None where the parser used up its operations. Each text has its own parser: nothing carries over."""
    max_callbacks = params.max_operations_per_byte * max(_LEAST_NUM_BYTES, len(content)) // OPERATIONS_PER_CALLBACK
    num_callbacks = 0

    def read(offset: int, point: Point) -> bytes:
        return content[offset : offset + _NUM_BYTES_READ]

    def must_stop(offset: int, has_error: bool) -> bool:
        nonlocal num_callbacks
        num_callbacks += 1
        return num_callbacks > max_callbacks

    try:
        return Parser(_LANGUAGES[grammar]).parse(read, progress_callback=must_stop)
    except ValueError:
        if num_callbacks > max_callbacks:
            return None
        raise


def _count_errors(root: Node) -> tuple[int, int]:
    """Bytes under the outermost ERROR nodes, and the number of MISSING nodes outside them, which have no bytes."""
    num_error_bytes = num_missing_nodes = 0
    pending = [root] if root.has_error else []
    while pending:
        node = pending.pop()
        if node.is_error:
            num_error_bytes += node.end_byte - node.start_byte
        elif node.is_missing:
            num_missing_nodes += 1
        else:
            pending.extend(child for child in node.children if child.has_error)
    return num_error_bytes, num_missing_nodes


def _includes(content: bytes, root: Node) -> tuple[str, ...]:
    """The tree tells directives from the text of comments and raw strings; a search finds them faster than a walk."""
    found = []
    for match in _INCLUDE.finditer(content):
        at = content.index(b"#", match.start())
        node = root.descendant_for_byte_range(at, at + 1)
        if node is not None and node.type == "#include":
            found.append(match[1].decode())
    return tuple(found)
