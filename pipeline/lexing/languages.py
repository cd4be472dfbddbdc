"""Languages: the files of each, its grammar and the syntax nodes that become chunks, its lexer, its includes. One entry each.

Collection, cleaning, the shares by language, the bands of pins, the git history, the include order and the parser read
`LANGUAGES`. Nothing is imported for an entry: what it names as `module:name` is loaded with the first text.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from pipeline.core.declared import load_declared
from pipeline.core.errors import ParamsError
from pipeline.core.records import ChunkKind
from pipeline.core.registry import Registry


@dataclass(frozen=True, eq=False)
class Declarators:
    """Node types of declarations like those of C: a type, then declarators in each other. A grammar without them has none."""

    declarations: frozenset[str] = frozenset()
    """Declarations whose type can be a class with its body."""
    prototypes: frozenset[str] = frozenset()
    """Those that are the signature of a function if they declare one."""
    enumerations: frozenset[str] = frozenset()
    """Types that make a declaration one of kind `class_decl` if they have their body, in a class too."""
    names: frozenset[str] = frozenset()
    """Declarators that are a name alone. A function with one is a class after a macro: `class EXPORT Name { ... }`."""
    functions: frozenset[str] = frozenset()
    parenthesized: frozenset[str] = frozenset()
    """Declarators that make a variable of what a function declarator declares: `int (*f)(int)`."""
    references: frozenset[str] = frozenset()
    """Declarators whose inner one is their first child: no field names it."""
    field: str = "declarator"
    type_field: str = "type"


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
    statements: frozenset[str] = frozenset()
    """Nodes that are punctuation if they have a single byte."""
    outside_classes: Mapping[str, ChunkKind] = field(default_factory=dict)
    """Declarations of a kind of their own, which are class members inside of a class."""
    declarators: Declarators = Declarators()
    body_field: str = "body"
    braces: tuple[str, str] = ("{", "}")
    """Nodes at the beginning and the end of a container's body."""
    condition_fields: tuple[str, ...] = ("condition", "name")
    """Fields of a conditional, one of which ends its first line."""
    lists: frozenset[str] = frozenset()
    """Bodies of wrappers that hold several declarations: they are not unwrapped."""


@dataclass(frozen=True, eq=False)
class Grammar:
    """A tree-sitter grammar: its distribution, whose version is part of identities, and `module:function`."""

    distribution: str
    function: str
    nodes: NodeTypes
    has_c_preprocessor: bool = False
    """True if branches of `#if` that do not balance are to be parsed as blanks; chunks and includes are judged as those of C."""


@dataclass(frozen=True, eq=False)
class Includes:
    """Rule for the names of other files of the same source in a text: these files come before it in the include order."""

    pattern: re.Pattern[bytes]
    """Matches each name with what is before it; group 1 is stored. A pattern that begins with a fixed byte is fast."""
    node: str
    """Type of the leaf where a match begins: it excludes comments and strings."""
    resolve: str
    """`module:function`: from a file's path, a name as stored, and the paths of each file name, to the path meant or None."""
    misread_node: str = ""
    """Type of a leaf that the grammar makes of one that begins its line, by mistake."""

    @cached_property
    def resolver(self) -> Callable[[str, str, Mapping[str, Sequence[str]]], str | None]:
        """The function that `resolve` names."""
        found: Callable[[str, str, Mapping[str, Sequence[str]]], str | None] = load_declared(
            "rule for includes", "resolve", self.resolve
        )
        return found


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
    """Names of the languages that a text may be in, in the order in which they are tried while errors are left."""
    decided_by: str = ""
    """`module:function`: from the bytes of a text to those names in `one_of` that are tried. All, if it is empty."""
    includes: Includes | None = None
    unit_suffixes: frozenset[str] = frozenset()
    """Suffixes of files that are compiled by themselves."""
    lexer: str = "pipeline.lexing.cpp:CPP_LEXER"
    """`module:name` of a `pipeline.lexing.lexer.Lexer`: another one if comments or literals differ from those of C."""
    compiled_as: str = ""
    """Value of the compiler's option `-x` for a file in it; empty if libclang does not compile it."""
    title: str = ""
    """Name of the language in prose."""
    version: int = 1
    """Raised by a program that changes the language that it has registered."""

    def __post_init__(self) -> None:
        bad = sorted(suffix for suffix in self.suffixes | self.unit_suffixes if not suffix.startswith("."))
        if bad:
            raise ParamsError(f"language {self.name}", f"its suffix is {bad[0]!r}", "a dot and letters, such as `.c`")
        if self.grammar is None and not self.one_of:
            raise ParamsError(f"language {self.name}", "it has no grammar", "a `grammar`, or languages in `one_of`")


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
    statements=frozenset({"expression_statement"}),
    outside_classes={"using_declaration": ChunkKind.NAMESPACE},
    declarators=Declarators(
        declarations=frozenset({"declaration", "field_declaration"}),
        prototypes=frozenset({"declaration"}),
        enumerations=frozenset({"enum_specifier"}),
        names=frozenset({"identifier", "field_identifier", "type_identifier"}),
        functions=frozenset({"function_declarator"}),
        parenthesized=frozenset({"parenthesized_declarator"}),
        references=frozenset({"reference_declarator"}),
    ),
    lists=frozenset({"declaration_list"}),
)
"""Node types of both grammars: those of C are a part of those of C++."""
C_INCLUDES = Includes(
    re.compile(rb"#[ \t]*include[ \t]*(<[^<>\n]+>|\"[^\"\n]+\")"),
    "#include",
    "pipeline.lexing.c_files:resolve_include",
    misread_node="preproc_arg",  # of an empty `#define` with a blank at its end, over lines without text
)

C = Language(
    "c",
    frozenset({".c"}),
    Grammar("tree-sitter-c", "tree_sitter_c:language", C_NODES, has_c_preprocessor=True),
    includes=C_INCLUDES,
    unit_suffixes=frozenset({".c"}),
    compiled_as="c",
    title="C",
)
C_OR_CPP = Language(
    "c_or_cpp",
    frozenset({".h"}),
    one_of=("c", "cpp"),
    decided_by="pipeline.lexing.c_files:languages_of_header",
    includes=C_INCLUDES,
    compiled_as="c++",
)
_CPP_UNITS = (".C", ".cc", ".cp", ".cpp", ".cxx", ".c++", ".cu")
_CPP_HEADERS = (".hh", ".hpp", ".hxx", ".h++", ".inl", ".ipp", ".tcc", ".tpp", ".cuh", ".ixx", ".cppm")
CPP = Language(
    "cpp",
    frozenset(_CPP_UNITS + _CPP_HEADERS),
    Grammar("tree-sitter-cpp", "tree_sitter_cpp:language", C_NODES, has_c_preprocessor=True),
    includes=C_INCLUDES,
    unit_suffixes=frozenset(_CPP_UNITS),
    compiled_as="c++",
    title="C++",
)

LANGUAGES = Registry(
    "language",
    C,
    C_OR_CPP,
    CPP,
    is_in_parts=True,
    conflict=lambda entry, other: ", ".join(sorted(f"suffix {suffix}" for suffix in entry.suffixes & other.suffixes)),
)
DEFAULT_LANGUAGE = CPP
"""Language by whose lexer a text is read whose own is not known: a license, an evaluation item that names none."""


def language_of(path: str) -> Language | None:
    """Return the language of a file by its suffix, or None. `.C` is C++ by long custom."""
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    suffix = name[dot:] if dot > 0 else ""  # as that of a path of `pathlib`, at a tenth of the cost
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


def suffixes_commented_like_c() -> list[str]:
    """Return the suffixes of what is lexed as C is, sorted."""
    lexers = {each.name: {LANGUAGES[name].lexer for name in each.one_of or (each.name,)} for each in LANGUAGES}
    return sorted(
        {suffix for name, found in lexers.items() if found == {C.lexer} for suffix in LANGUAGES[name].suffixes}
    )


def suffixes_not_preprocessed() -> list[str]:
    """Return the suffixes of files that may be in a language without the preprocessor of C, sorted."""
    grammars = {each.name: [LANGUAGES[name].grammar for name in each.one_of or (each.name,)] for each in LANGUAGES}
    found = (name for name, all_ in grammars.items() if not all(each and each.has_c_preprocessor for each in all_))
    return sorted({suffix for name in found for suffix in LANGUAGES[name].suffixes})


def grammar_distributions() -> list[str]:
    """Return the distributions of all grammars, sorted."""
    return sorted({language.grammar.distribution for language in LANGUAGES if language.grammar})


def titles() -> str:
    """Return the names of the languages in prose, such as `C and C++`."""
    *others, last = (language.title for language in LANGUAGES if language.title)
    return f"{', '.join(others)} and {last}"
