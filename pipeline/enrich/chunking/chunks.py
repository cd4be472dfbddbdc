"""A text cut into chunks along its structure. The chunks, put together, are the text, byte for byte.

What a chunk is, by kind:

    preamble       preprocessor directives outside of bodies: includes, macros, conditions, branches that were blanked
    namespace      the opening and the closing of a namespace or of an `extern "C"` block; aliases, using-declarations
    class_decl     a class up to its opening brace, and from its closing brace on; one without a body; an enumeration
    class_member   what stands in a class and is no function with a body, no class, enumeration or typedef
    func_sig       a function up to its body, templates and initializers included; a prototype outside of classes
    func_body      the body of a function, braces included
    typedef        typedefs, aliases of types, concepts
    comment        comments that belong to nothing, such as the license header
    other          variables, assertions, calls of macros, and what did not parse

A comment belongs to the declaration that follows it without a blank line, or whose end stands on its line. Neighbors
of one kind and level without a blank line between them are one chunk, except functions and classes. A chunk starts at
the start of its line if only blanks stand before it there; all other blanks between two chunks belong to the first.

The level of a chunk is the number of namespace bodies and class bodies around it, at most 255. Conditionals and
`extern "C"` do not count.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tree_sitter import Node

from pipeline.core.records import ChunkKind
from pipeline.enrich.chunking.spans import Chunk, Spans
from pipeline.enrich.syntax.parse import Syntax

__all__ = ["Chunk", "chunks_of"]

_CLASSES = frozenset({"class_specifier", "struct_specifier", "union_specifier"})
_CONDITIONALS = frozenset({"preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef"})
_DECLARATIONS = frozenset({"declaration", "field_declaration"})
_TYPED = _DECLARATIONS | {"function_definition"}
_WRAPPERS = frozenset({"template_declaration", "linkage_specification"})
_BESIDE_DECLARATIONS = frozenset({"comment", "template_parameter_list", "requires_clause"})
_NAMES = frozenset({"identifier", "field_identifier", "type_identifier"})
_PUNCTUATION = frozenset({";", ":", ","})
_KINDS = {
    "preproc_include": ChunkKind.PREAMBLE,
    "preproc_def": ChunkKind.PREAMBLE,
    "preproc_function_def": ChunkKind.PREAMBLE,
    "preproc_call": ChunkKind.PREAMBLE,
    "#endif": ChunkKind.PREAMBLE,
    "namespace_alias_definition": ChunkKind.NAMESPACE,
    "type_definition": ChunkKind.TYPEDEF,
    "alias_declaration": ChunkKind.TYPEDEF,
    "concept_definition": ChunkKind.TYPEDEF,
    "class_specifier": ChunkKind.CLASS_DECL,
    "struct_specifier": ChunkKind.CLASS_DECL,
    "union_specifier": ChunkKind.CLASS_DECL,
    "enum_specifier": ChunkKind.CLASS_DECL,
    "compound_statement": ChunkKind.FUNC_BODY,
}
_ONE_SPAN = {
    name: kind for name, kind in _KINDS.items() if name.startswith(("preproc", "#", "type_def", "alias", "concept"))
}
"""What is one span whatever stands in it."""
_DOCUMENTED_DIRECTIVES = frozenset({"preproc_def", "preproc_function_def"})


class Closing(NamedTuple):
    """The closing brace of a container and what follows it in the same declaration."""

    start: int
    end: int
    kind: ChunkKind


@dataclass(slots=True)
class Container:
    """Siblings that are walked: those in the file, a namespace, a class, a conditional, a part that did not parse."""

    children: Iterator[Node]
    level: int
    in_class: bool
    closing: Closing | None = None


def chunks_of(syntax: Syntax) -> list[Chunk]:
    """The chunks of a parsed text; one of kind `other` where there is no tree. An empty text has none."""
    spans = Spans()
    if syntax.tree is not None:
        _walk(syntax.tree.root_node, spans)
    return spans.chunks(syntax.content, syntax.blanked)


def _walk(root: Node, spans: Spans) -> None:
    """Visit the children of containers and of nothing else: the bodies of functions are most of a text."""
    stack = [Container(iter(root.children), 0, in_class=False)]
    while stack:
        container = stack[-1]
        node = next(container.children, None)
        if node is not None:
            opened = _visit(node, container, spans)
            if opened is not None:
                stack.append(opened)
            continue
        stack.pop()
        if container.closing is not None:
            outer_level = stack[-1].level
            spans.add(*container.closing, outer_level, takes_comment=False)


def _visit(node: Node, container: Container, spans: Spans) -> Container | None:
    """Add a node's span; a container adds its opening and is returned."""
    kind = node.type
    if kind == "comment":
        spans.add_comment(node.start_byte, node.end_byte, container.level)
    elif kind in _ONE_SPAN:
        span_kind = _ONE_SPAN[kind]
        takes_comment = span_kind is not ChunkKind.PREAMBLE or kind in _DOCUMENTED_DIRECTIVES
        spans.add(node.start_byte, node.end_byte, span_kind, container.level, takes_comment)
    elif kind in _PUNCTUATION or (kind == "expression_statement" and node.end_byte - node.start_byte == 1):
        spans.absorb(node.end_byte)
    elif kind == "ERROR":
        return Container(iter(node.children), container.level, container.in_class)
    elif kind in _CONDITIONALS:
        return _open_conditional(node, container, spans)
    else:
        return _visit_declaration(node, kind, container, spans)
    return None


def _visit_declaration(outer: Node, type_: str, container: Container, spans: Spans) -> Container | None:
    """`type_` is the outer node's; asking a node for it makes a string each time."""
    node = outer
    if type_ in _WRAPPERS:
        node = _unwrap(outer)
        type_ = node.type
    if type_ in ("namespace_definition", "linkage_specification"):
        body = node.child_by_field_name("body")
        if body is not None:
            num_levels = int(type_ == "namespace_definition")
            inner = Container(iter(()), container.level + num_levels, in_class=False)
            return _open(outer, body, ChunkKind.NAMESPACE, container.level, inner, spans)
    declared = node.child_by_field_name("type") if type_ in _TYPED else None
    body = _class_body(node, type_, declared)
    if body is not None:
        inner = Container(iter(()), container.level + 1, in_class=True)
        return _open(outer, body, ChunkKind.CLASS_DECL, container.level, inner, spans)
    body = _function_body(node) if type_ == "function_definition" else None
    if body is not None:
        spans.add(outer.start_byte, body.start_byte, ChunkKind.FUNC_SIG, container.level)
        spans.add(body.start_byte, outer.end_byte, ChunkKind.FUNC_BODY, container.level, takes_comment=False)
        return None
    kind = _KINDS.get(type_) or _kind_of(node, type_, declared, container.in_class)
    spans.add(outer.start_byte, outer.end_byte, kind, container.level, takes_comment=kind is not ChunkKind.PREAMBLE)
    return None


def _open(outer: Node, body: Node, kind: ChunkKind, level: int, inner: Container, spans: Spans) -> Container:
    """Add a declaration up to its opening brace; its closing brace and what follows come when `inner` is done."""
    children = body.children
    opening_end = body.start_byte
    if children and children[0].type == "{":
        opening_end = children.pop(0).end_byte
    spans.add(outer.start_byte, opening_end, kind, level, takes_comment=kind is ChunkKind.CLASS_DECL)
    if children and children[-1].type == "}":
        inner.closing = Closing(children.pop().start_byte, outer.end_byte, kind)
    inner.children = iter(children)
    return inner


def _open_conditional(node: Node, container: Container, spans: Spans) -> Container:
    """A conditional is walked in place: its directive lines are preamble, its branches what they are without it."""
    condition = node.child_by_field_name("condition") or node.child_by_field_name("name") or node.child(0)
    line_end = condition.end_byte if condition is not None else node.start_byte
    spans.add(node.start_byte, line_end, ChunkKind.PREAMBLE, container.level, takes_comment=False)
    rest = (child for child in node.children if child.start_byte >= line_end)
    return Container(rest, container.level, container.in_class)


def _unwrap(node: Node) -> Node:
    """The declaration inside of `template <...>` and of `extern "C"` without braces."""
    while node.type in _WRAPPERS:
        inner = node.child_by_field_name("body") or _last_declaration(node)
        if inner is None or inner.type == "declaration_list":
            return node
        node = inner
    return node


def _last_declaration(node: Node) -> Node | None:
    inner = [child for child in node.named_children if child.type not in _BESIDE_DECLARATIONS]
    return inner[-1] if inner else None


def _class_body(node: Node, type_: str, declared: Node | None) -> Node | None:
    """The body of a class, also of one that declares variables, or behind a macro: `class EXPORT Name { ... };`."""
    if type_ in _CLASSES:
        return node.child_by_field_name("body")
    if declared is None or declared.type not in _CLASSES:
        return None
    if type_ in _DECLARATIONS:
        return declared.child_by_field_name("body")
    declarator = node.child_by_field_name("declarator")
    is_behind_macro = declarator is not None and declarator.type in _NAMES
    return node.child_by_field_name("body") if is_behind_macro else None


def _function_body(node: Node) -> Node | None:
    last = node.child(node.child_count - 1)
    is_body = last is not None and last.type in ("compound_statement", "try_statement", "constructor_try_statement")
    return last if is_body else node.child_by_field_name("body")


def _kind_of(node: Node, type_: str, declared: Node | None, in_class: bool) -> ChunkKind:
    """The kind of a declaration without a body of its own."""
    is_declaration = type_ in _DECLARATIONS
    if is_declaration and declared is not None and _is_enumeration(declared):
        return ChunkKind.CLASS_DECL
    if in_class:
        return ChunkKind.CLASS_MEMBER
    if type_ == "using_declaration":
        return ChunkKind.NAMESPACE
    is_function = type_ == "function_definition" or (type_ == "declaration" and _declares_function(node))
    return ChunkKind.FUNC_SIG if is_function else ChunkKind.OTHER


def _is_enumeration(declared: Node) -> bool:
    return declared.type == "enum_specifier" and declared.child_by_field_name("body") is not None


def _declares_function(node: Node) -> bool:
    """Whether a declaration is a prototype. `int (*f)(int);` is a variable."""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None:
        inner = declarator.child_by_field_name("declarator")
        if declarator.type == "function_declarator":
            return inner is None or inner.type != "parenthesized_declarator"
        declarator = declarator.named_child(0) if declarator.type == "reference_declarator" else inner
    return False
