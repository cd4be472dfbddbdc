"""Chunks of a text along its structure. Put together they are the text, byte for byte.

What a chunk is, by kind:

    preamble       preprocessor directives outside of bodies: includes, macros, conditions, branches that were blanked
    namespace      the opening and the closing of a namespace or of an `extern "C"` block; aliases, using-declarations
    class_decl     a class up to its opening brace, and from its closing brace on; one without a body; an enumeration
    class_member   what is in a class, but not functions with a body, classes, enumerations and typedefs
    func_sig       a function up to its body, templates and initializers included; a prototype outside of classes
    func_body      the body of a function, braces included
    typedef        typedefs, aliases of types, concepts
    comment        comments that belong to nothing, such as the license header
    other          variables, assertions, calls of macros, and what did not parse

A comment belongs to the declaration that follows it without a blank line, or that ends on its line. Neighbors
of one kind and level without a blank line between them are one chunk, except functions and classes. A chunk starts at
the start of its line if only blanks are before it there; all other blanks between two chunks belong to the first.

The level of a chunk is the number of namespace bodies and class bodies around it, at most 255. Conditionals and
`extern "C"` do not count.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from pipeline.core.records import ChunkKind
from pipeline.lexing.languages import Declarators, NodeTypes
from pipeline.stages.enrich.chunking.spans import Chunk, Spans
from pipeline.stages.enrich.syntax.parse import Syntax


@dataclass(slots=True)
class Container:
    """Siblings that are walked: those in the file, a namespace, a class, a conditional, a part that did not parse."""

    children: Iterator[Node]
    level: int
    in_class: bool
    closing: tuple[int, int, ChunkKind] | None = None
    """Start and end of the closing brace and what follows it in the same declaration, and its kind."""


def chunks_of(syntax: Syntax) -> list[Chunk]:
    """Return the chunks of a parsed text; one of kind `other` if there is no tree. An empty text has none."""
    spans = Spans()
    if syntax.tree is not None:
        assert syntax.language.grammar is not None  # it was parsed with it
        nodes = syntax.language.grammar.nodes
        _Walk(nodes, nodes.declarators.declarations | nodes.functions, spans).run(syntax.tree.root_node)
    return spans.chunks(syntax.content, syntax.blanked)


@dataclass(slots=True)
class _Walk:
    """A walk over a tree that adds spans. It visits the children of containers only: function bodies are most of a text."""

    nodes: NodeTypes
    typed: frozenset[str]
    """Declarations and definitions that have a type."""
    spans: Spans

    def run(self, root: Node) -> None:
        """Add the spans of a tree, in the order of the text."""
        stack = [Container(iter(root.children), 0, in_class=False)]
        while stack:
            container = stack[-1]
            node = next(container.children, None)
            if node is not None:
                opened = self._visit(node, container)
                if opened is not None:
                    stack.append(opened)
                continue
            stack.pop()
            if container.closing is not None:
                self.spans.add(*container.closing, stack[-1].level, takes_comment=False)

    def _visit(self, node: Node, container: Container) -> Container | None:
        """Add a node's span. Return the container that it opens, if any, with its opening added."""
        kind, nodes, spans = node.type, self.nodes, self.spans
        if kind in nodes.comments:
            spans.add_comment(node.start_byte, node.end_byte, container.level)
        elif kind in nodes.single:
            span_kind = nodes.single[kind]
            takes_comment = span_kind is not ChunkKind.PREAMBLE or kind in nodes.documented_preamble
            spans.add(node.start_byte, node.end_byte, span_kind, container.level, takes_comment)
        elif kind in nodes.punctuation or (kind in nodes.statements and node.end_byte - node.start_byte == 1):
            spans.absorb(node.end_byte)
        elif kind == "ERROR":
            return Container(iter(node.children), container.level, container.in_class)
        elif kind in nodes.conditionals:
            return self._open_conditional(node, container)
        else:
            return self._visit_declaration(node, kind, container)
        return None

    def _visit_declaration(self, outer: Node, type_: str, container: Container) -> Container | None:
        """Add a declaration. `type_` is the outer node's: each request to a node for it builds a string."""
        node, nodes, spans = outer, self.nodes, self.spans
        if type_ in nodes.wrappers:
            node = self._unwrap(outer)
            type_ = node.type
        if type_ in nodes.namespaces:
            body = node.child_by_field_name(nodes.body_field)
            if body is not None:
                inner = Container(iter(()), container.level + nodes.namespaces[type_], in_class=False)
                return self._open(outer, body, ChunkKind.NAMESPACE, container.level, inner)
        declared = node.child_by_field_name(nodes.declarators.type_field) if type_ in self.typed else None
        declared_type = "" if declared is None else declared.type
        body = self._class_body(node, type_, declared, declared_type)
        if body is not None:
            inner = Container(iter(()), container.level + 1, in_class=True)
            return self._open(outer, body, ChunkKind.CLASS_DECL, container.level, inner)
        body = self._function_body(node) if type_ in nodes.functions else None
        if body is not None:
            spans.add(outer.start_byte, body.start_byte, ChunkKind.FUNC_SIG, container.level)
            spans.add(body.start_byte, outer.end_byte, ChunkKind.FUNC_BODY, container.level, takes_comment=False)
            return None
        kind = nodes.single.get(type_) or nodes.declarations.get(type_)
        enumeration = declared if declared_type in nodes.declarators.enumerations else None
        kind = kind or self._kind_of(node, type_, enumeration, container.in_class)
        spans.add(outer.start_byte, outer.end_byte, kind, container.level, takes_comment=kind is not ChunkKind.PREAMBLE)
        return None

    def _open(self, outer: Node, body: Node, kind: ChunkKind, level: int, inner: Container) -> Container:
        """Add a declaration up to its opening brace; its closing brace and what follows come when `inner` is done."""
        children = body.children
        opening, closing = self.nodes.braces
        opening_end = body.start_byte
        if children and children[0].type == opening:
            opening_end = children.pop(0).end_byte
        self.spans.add(outer.start_byte, opening_end, kind, level, takes_comment=kind is ChunkKind.CLASS_DECL)
        if children and children[-1].type == closing:
            inner.closing = (children.pop().start_byte, outer.end_byte, kind)
        inner.children = iter(children)
        return inner

    def _open_conditional(self, node: Node, container: Container) -> Container:
        """Add the first line of a conditional as preamble. Its branches are walked as if they were outside of it."""
        conditions = map(node.child_by_field_name, self.nodes.condition_fields)
        condition = next(filter(None, conditions), None) or node.child(0)
        line_end = condition.end_byte if condition is not None else node.start_byte
        self.spans.add(node.start_byte, line_end, ChunkKind.PREAMBLE, container.level, takes_comment=False)
        rest = (child for child in node.children if child.start_byte >= line_end)
        return Container(rest, container.level, container.in_class)

    def _unwrap(self, node: Node) -> Node:
        """Return the declaration inside of `template <...>` and of `extern "C"` without braces."""
        parts = self.nodes.wrapper_parts
        while node.type in self.nodes.wrappers:
            declarations = (child for child in reversed(node.named_children) if child.type not in parts)
            inner = node.child_by_field_name(self.nodes.body_field) or next(declarations, None)
            if inner is None or inner.type in self.nodes.lists:
                return node
            node = inner
        return node

    def _class_body(self, node: Node, type_: str, declared: Node | None, declared_type: str) -> Node | None:
        """Return the body of a class, also of one that declares variables, or after a macro: `class EXPORT Name { ... };`."""
        nodes = self.nodes
        if type_ in nodes.classes:
            return node.child_by_field_name(nodes.body_field)
        if declared is None or declared_type not in nodes.classes:
            return None
        if type_ in nodes.declarators.declarations:
            return declared.child_by_field_name(nodes.body_field)
        declarator = node.child_by_field_name(nodes.declarators.field)
        is_after_macro = declarator is not None and declarator.type in nodes.declarators.names
        return node.child_by_field_name(nodes.body_field) if is_after_macro else None

    def _function_body(self, node: Node) -> Node | None:
        last = node.child(node.child_count - 1)
        is_body = last is not None and last.type in self.nodes.function_bodies
        return last if is_body else node.child_by_field_name(self.nodes.body_field)

    def _kind_of(self, node: Node, type_: str, enumeration: Node | None, in_class: bool) -> ChunkKind:
        """Return the kind of a declaration without a body of its own."""
        nodes, declarators = self.nodes, self.nodes.declarators
        if enumeration and type_ in declarators.declarations and enumeration.child_by_field_name(nodes.body_field):
            return ChunkKind.CLASS_DECL
        if in_class:
            return ChunkKind.CLASS_MEMBER
        if type_ in nodes.outside_classes:
            return nodes.outside_classes[type_]
        is_prototype = type_ in declarators.prototypes and _declares_function(node, declarators)
        return ChunkKind.FUNC_SIG if is_prototype or type_ in nodes.functions else ChunkKind.OTHER


def _declares_function(node: Node, types: Declarators) -> bool:
    """Return whether a declaration is a prototype. `int (*f)(int);` is a variable."""
    declarator = node.child_by_field_name(types.field)
    while declarator is not None:
        inner, type_ = declarator.child_by_field_name(types.field), declarator.type
        if type_ in types.functions:
            return inner is None or inner.type not in types.parenthesized
        declarator = declarator.named_child(0) if type_ in types.references else inner
    return False
