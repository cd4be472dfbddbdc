"""Languages: the files of each, its grammar, and the syntax nodes that become chunks. One entry declares a language.

Collection, cleaning, the shares by language, the bands of pins, the git history, the include order and the parser read
`LANGUAGES`. Nothing is imported for an entry: a lexer and a grammar are loaded with the first text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from pipeline.core.records import ChunkKind
from pipeline.core.registry import Registry


@dataclass(frozen=True, eq=False)
class NodeTypes:
    """Node types of a grammar by role in `pipeline.stages.enrich.chunking.chunks`. A type without a role is a declaration."""

    single: Mapping[str, ChunkKind]
    """One chunk each, whatever is inside."""
    declarations: Mapping[str, ChunkKind]
    """Declarations whose kind does not depend on where they are."""
    namespaces: Mapping[str, int]
    """Containers of kind `namespace`, and the levels that each adds."""
    classes: frozenset[str]
    """Containers of kind `class_decl`, one level each."""
    functions: frozenset[str]
    """Definitions that are cut into signature and body."""
    function_bodies: frozenset[str]
    conditionals: frozenset[str]
    """Containers that add no level: only their first line is preamble."""
    wrappers: frozenset[str]
    """Nodes around one declaration, such as `template <...>`."""
    wrapper_parts: frozenset[str]
    """Children of a wrapper that are not the declaration."""
    comments: frozenset[str]
    documented_preamble: frozenset[str]
    """Nodes of kind `preamble` that own a comment right before them."""
    punctuation: frozenset[str]
    """Nodes that belong to the chunk before them."""


@dataclass(frozen=True, eq=False)
class Grammar:
    """A tree-sitter grammar: its distribution, whose version is part of identities, and `module:function`."""

    distribution: str
    function: str
    nodes: NodeTypes


@dataclass(frozen=True, eq=False)
class Language:
    """A language, or a kind of file that is written in one of several.

    A suffix holds in any case, unless another language has it in exactly that case.
    """

    name: str
    """Stored in the column `language`, and part of the names of measures."""
    suffixes: frozenset[str]
    grammar: Grammar | None = None
    """None if the file's text decides between `one_of`."""
    one_of: tuple[str, ...] = ()
    """Names of the languages that a text may be in: the first, unless the text looks like the second."""
    unit_suffixes: frozenset[str] = frozenset()
    """Suffixes of files that are compiled by themselves."""
    lexer: str = "pipeline.lexing.cpp:CPP_LEXER"
    """`module:name` of a `pipeline.lexing.lexer.Lexer`: another one if comments or literals differ from those of C."""
    compiled_as: str = ""
    """Value of the compiler's option `-x` for a file in it; empty if libclang does not compile it."""


C_NODES = NodeTypes(
    single={
        "preproc_include": ChunkKind.PREAMBLE,
        "preproc_def": ChunkKind.PREAMBLE,
        "preproc_function_def": ChunkKind.PREAMBLE,
        "preproc_call": ChunkKind.PREAMBLE,
        "#endif": ChunkKind.PREAMBLE,
        "type_definition": ChunkKind.TYPEDEF,
        "alias_declaration": ChunkKind.TYPEDEF,
        "concept_definition": ChunkKind.TYPEDEF,
    },
    declarations={
        "namespace_alias_definition": ChunkKind.NAMESPACE,
        "class_specifier": ChunkKind.CLASS_DECL,
        "struct_specifier": ChunkKind.CLASS_DECL,
        "union_specifier": ChunkKind.CLASS_DECL,
        "enum_specifier": ChunkKind.CLASS_DECL,
        "compound_statement": ChunkKind.FUNC_BODY,
    },
    namespaces={"namespace_definition": 1, "linkage_specification": 0},
    classes=frozenset({"class_specifier", "struct_specifier", "union_specifier"}),
    functions=frozenset({"function_definition"}),
    function_bodies=frozenset({"compound_statement", "try_statement", "constructor_try_statement"}),
    conditionals=frozenset({"preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef"}),
    wrappers=frozenset({"template_declaration", "linkage_specification"}),
    wrapper_parts=frozenset({"comment", "template_parameter_list", "requires_clause"}),
    comments=frozenset({"comment"}),
    documented_preamble=frozenset({"preproc_def", "preproc_function_def"}),
    punctuation=frozenset({";", ":", ","}),
)
"""Node types of both grammars: those of C are a part of those of C++."""

C = Language(
    "c",
    frozenset({".c"}),
    Grammar("tree-sitter-c", "tree_sitter_c:language", C_NODES),
    unit_suffixes=frozenset({".c"}),
    compiled_as="c",
)
C_OR_CPP = Language("c_or_cpp", frozenset({".h"}), one_of=("c", "cpp"), compiled_as="c++")
_CPP_UNITS = (".C", ".cc", ".cp", ".cpp", ".cxx", ".c++", ".cu")
_CPP_HEADERS = (".hh", ".hpp", ".hxx", ".h++", ".inl", ".ipp", ".tcc", ".tpp", ".cuh", ".ixx", ".cppm")
CPP = Language(
    "cpp",
    frozenset(_CPP_UNITS + _CPP_HEADERS),
    Grammar("tree-sitter-cpp", "tree_sitter_cpp:language", C_NODES),
    unit_suffixes=frozenset(_CPP_UNITS),
    compiled_as="c++",
)

LANGUAGES = Registry("language", C, C_OR_CPP, CPP, is_in_parts=True)


def language_of(path: str) -> Language | None:
    """Return the language of a file by its suffix, or None. `.C` is C++ by long custom."""
    suffix = PurePosixPath(path).suffix
    every = tuple(LANGUAGES)
    found = (language for written in (suffix, suffix.lower()) for language in every if written in language.suffixes)
    return next(found, None)


def is_source(path: str) -> bool:
    """Return whether a file is in one of the languages, by its suffix."""
    return language_of(path) is not None


def is_unit(path: str) -> bool:
    """Return whether a file is compiled by itself, by its suffix."""
    language, suffix = language_of(path), PurePosixPath(path).suffix
    return language is not None and not language.unit_suffixes.isdisjoint((suffix, suffix.lower()))


def suffixes_by_language() -> dict[str, list[str]]:
    """Return the suffixes of each language, sorted: what decides which files are read, and so a part of identities."""
    return {language.name: sorted(language.suffixes) for language in sorted(LANGUAGES, key=lambda each: each.name)}


def source_suffixes() -> list[str]:
    """Return the suffixes of all languages in lower case, sorted."""
    return sorted({suffix.lower() for language in LANGUAGES for suffix in language.suffixes})


def grammar_distributions() -> list[str]:
    """Return the distributions of all grammars, sorted."""
    return sorted({language.grammar.distribution for language in LANGUAGES if language.grammar})
