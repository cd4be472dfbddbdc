"""Syntax parse: one text to its tree, the share of it that did not parse, and the files that it includes.

Every loop over a tree is iterative: a hostile text nests a hundred thousand levels deep.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node, Parser, Point, Tree

from pipeline.lexing.languages import Includes, Language
from pipeline.stages.enrich.params import SyntaxParams
from pipeline.stages.enrich.syntax.branches import ByteRange, conditionals_of, unbalanced_branches, with_spaces
from pipeline.stages.enrich.syntax.grammar import load_grammar
from pipeline.stages.enrich.syntax.leaves import Leaves, leaves_of

OPERATIONS_PER_CALLBACK = 100
"""Parser operations between two progress callbacks (`OP_COUNT_PER_PARSER_CALLBACK_CHECK` in its lib/src/parser.c)."""
_NUM_BYTES_READ = 65_536
"""Bytes that tree-sitter reads at once. It reads again after errors: reading the whole rest would cost the square of the length."""
_LEAST_NUM_BYTES = 1_000
"""Shorter texts get the operations of this many bytes: their first callback comes late."""
_MAX_NUM_ERRORS = 200
"""Texts with more errors are in another language, or blanking does not help."""


@dataclass(frozen=True)
class Syntax:
    """The result of a parse."""

    content: bytes
    language: Language
    tree: Tree | None
    """None where a limit was hit; all bytes count as errors then."""
    includes: tuple[str, ...]
    """Included files in order, as written, with their quotes or brackets."""
    errors: tuple[ByteRange, ...]
    """The outermost ERROR nodes, ordered and disjoint."""
    num_missing_nodes: int
    num_error_bytes_unblanked: int
    """Error bytes of the text before anything was blanked."""
    blanked: tuple[ByteRange, ...] = ()
    """Byte ranges that were parsed as blanks, ordered and disjoint: unbalanced branches of #if."""
    limit: str = ""
    """The limit that was hit: a field of SyntaxParams."""

    @property
    def num_error_bytes(self) -> int:
        """Bytes under ERROR nodes."""
        return _num_bytes(self.errors)

    @property
    def error_fraction(self) -> float:
        """Bytes under ERROR nodes among all, in 0-1."""
        return self.num_error_bytes / max(1, len(self.content))


def leaves_of_syntax(syntax: Syntax) -> Leaves | None:
    """Return the leaves of the text's tree; None without a tree."""
    return None if syntax.tree is None else leaves_of(syntax.tree, load_grammar(syntax.language))


def parse_text(content: bytes, language: Language, params: SyntaxParams) -> Syntax:
    """Parse a text; where it has errors, without the branches of #if that do not balance, if that leaves fewer."""
    is_large = len(content) > params.max_num_bytes
    tree = None if is_large else _parse(content, language, params)
    if tree is None:
        limit = "max_num_bytes" if is_large else "max_operations_per_byte"
        errors: tuple[ByteRange, ...] = ((0, len(content)),) if content else ()
        return Syntax(content, language, None, _includes(content, language, None), errors, 0, len(content), limit=limit)
    errors, num_missing_nodes = _errors(tree.root_node)
    includes = _includes(content, language, tree.root_node)
    syntax = Syntax(content, language, tree, includes, errors, num_missing_nodes, _num_bytes(errors))
    is_preprocessed = language.grammar is not None and language.grammar.has_c_preprocessor
    if params.blank_unbalanced_branches and is_preprocessed and syntax.num_error_bytes + num_missing_nodes:
        conditionals = conditionals_of(content)
        syntax = _with_blanked_branches(syntax, params, unbalanced_branches(conditionals))
        if syntax.errors and len(syntax.errors) <= _MAX_NUM_ERRORS:
            syntax = _with_blanked_branches(syntax, params, unbalanced_branches(conditionals, syntax.errors))
    return syntax


def _with_blanked_branches(syntax: Syntax, params: SyntaxParams, blanked: Sequence[ByteRange]) -> Syntax:
    """Return the text parsed with these ranges blanked, if they are new and leave fewer bytes in errors."""
    is_new = bool(blanked) and tuple(blanked) != syntax.blanked
    tree = _parse(with_spaces(syntax.content, blanked), syntax.language, params) if is_new else None
    if tree is None:
        return syntax
    errors, num_missing_nodes = _errors(tree.root_node)
    if (_num_bytes(errors), num_missing_nodes) >= (syntax.num_error_bytes, syntax.num_missing_nodes):
        return syntax
    return replace(syntax, tree=tree, errors=errors, num_missing_nodes=num_missing_nodes, blanked=tuple(blanked))


def _parse(content: bytes, language: Language, params: SyntaxParams) -> Tree | None:
    """Return the tree, or None if the parser used up its operations. Each text has its own parser, without a state before."""
    max_callbacks = params.max_operations_per_byte * max(_LEAST_NUM_BYTES, len(content)) // OPERATIONS_PER_CALLBACK
    num_callbacks = 0

    def read(offset: int, point: Point) -> bytes:
        return content[offset : offset + _NUM_BYTES_READ]

    def must_stop(offset: int, has_error: bool) -> bool:
        nonlocal num_callbacks
        num_callbacks += 1
        return num_callbacks > max_callbacks

    try:
        return Parser(load_grammar(language)).parse(read, progress_callback=must_stop)
    except ValueError:
        if num_callbacks > max_callbacks:
            return None
        raise


def _errors(root: Node) -> tuple[tuple[ByteRange, ...], int]:
    """Return the outermost ERROR nodes, in order, and the number of MISSING nodes outside them, which have no bytes."""
    errors: list[ByteRange] = []
    num_missing_nodes = 0
    pending = [root] if root.has_error else []
    while pending:
        node = pending.pop()
        if node.is_error:
            errors.append((node.start_byte, node.end_byte))
        elif node.is_missing:
            num_missing_nodes += 1
        else:
            pending += [child for child in node.children if child.has_error]
    return tuple(sorted(errors)), num_missing_nodes


def _num_bytes(ranges: tuple[ByteRange, ...]) -> int:
    return sum(end - start for start, end in ranges)


def _includes(content: bytes, language: Language, root: Node | None) -> tuple[str, ...]:
    """Return the included files. A search is faster than a walk, and the tree excludes comments and raw strings."""
    includes = language.includes
    if includes is None:
        return ()
    return tuple(
        match[1].decode()
        for match in includes.pattern.finditer(content)
        if _is_include(content, includes, root, match.start())
    )


def _is_include(content: bytes, includes: Includes, root: Node | None, start: int) -> bool:
    node = None if root is None else root.descendant_for_byte_range(start, start + 1)
    if node is not None and node.type == includes.node:
        return True
    is_misread = node is not None and node.type == includes.misread_node
    return (root is None or is_misread) and _begins_line(content, start)


def _begins_line(content: bytes, start: int) -> bool:
    """Return whether only blanks are before a place in its line, which does not go on with the line before."""
    line = content.rfind(b"\n", 0, start) + 1
    return not content[line:start].strip(b" \t") and not content.endswith((b"\\\n", b"\\\r\n"), 0, line)
