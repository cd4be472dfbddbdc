"""Shapes of code: the share of a text that is data in tables and strings, and the share of lines that no C or C++ has.

Both are counted in the tokens of the lexer. Data is what a table holds: literals with nothing but commas, braces and signs
between them, and lines of one shape that are literals for a good part. Lines of another language are found by what the grammar
of C does not allow side by side, whatever the language is; the few words below only begin statements.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.lexing.cpp import CPP_LEXER
from pipeline.lexing.lexer import Lexed

MIN_DATA_BYTES = 1_024
"""Bytes of data below which a text has none that counts: a small table is a constant."""
MIN_LINES = 20
"""Lines below which the share is taken of this many."""
_MIN_SHADER_LINES = 2
"""Declarations from which a text is a shader: one may be by macros of C."""

_KEYWORDS = """
    if else for while do switch case default break continue return goto sizeof typedef struct union enum static extern
    const volatile register auto inline restrict signed unsigned void char short int long float double bool class
    template typename namespace using public private protected virtual explicit friend operator new delete this throw
    try catch constexpr consteval constinit noexcept override final mutable static_cast dynamic_cast reinterpret_cast
    const_cast decltype nullptr true false asm alignas alignof thread_local concept requires co_await co_return co_yield
    export module not and or xor __attribute__ __declspec __inline __forceinline __extension__ __restrict _Bool _Atomic
    typeid wchar_t char8_t char16_t char32_t defined __asm__ __volatile__ __asm __global__ __device__ __host__
    __shared__ __constant__ __kernel __local kernel global local device constant uniform varying in out inout layout
    precision highp mediump lowp attribute shared flat buffer
"""
_STARTERS = """
    def import from package func fn function let var val fun sub my our use impl pub mod trait end elif elsif elseif fi
    done esac then begin endmodule endfunction endcase always assign wire reg input output initial posedge module
    program subroutine implicit call echo procedure interface abstract sealed internal readonly async await foreach
    print puts require unless until with select where range chan defer type object match loop raise except finally
    lambda pass nonlocal yield del Dim Sub End Function Public Private set proc unset data instance deriving newtype
    open SELECT INSERT CREATE UPDATE DELETE FROM WHERE DROP ALTER VALUES message service rpc optional required repeated
    syntax assert SUBROUTINE CALL END IMPLICIT INTRINSIC
"""
_ALONE = "end fi done esac begin then endmodule endif pass"
_DIRECTIVES = """
    include define undef if ifdef ifndef elif else endif line error pragma warning include_next import ident embed elifdef elifndef
    sccs assert unassert version extension cmakedefine cmakedefine01 mesondefine using
"""


@dataclass(frozen=True)
class CodeShapes:
    """Counts of the tokens of a text; all bytes are those of tokens."""

    num_bytes: int
    numeric: int
    """Bytes of tables of numbers."""
    strings: int
    """Bytes of strings, and of tables of strings."""
    tables: int
    """Bytes of both, and of lines that have one shape."""
    foreign: NDArray[np.int64]
    """Lines of each of the SHAPES; of a language that is not read as C there are none."""
    num_shader_lines: int = 0
    """Declarations that only a language of shaders has."""

    def data_fraction(self, num_bytes: int, least: int = MIN_DATA_BYTES) -> float:
        """Return the share of some bytes of data in the text, 0-1; 0 if they are few."""
        return num_bytes / self.num_bytes if num_bytes >= least else 0.0

    @property
    def is_shader(self) -> bool:
        """Return whether a text is a shader: it has declarations that C has not, and is C else."""
        return self.num_shader_lines >= _MIN_SHADER_LINES

    @property
    def most_foreign(self) -> str:
        """Name of most of the lines that no C or C++ has, and how many of all they are; of a shader its declarations."""
        if self.is_shader:
            return f"declarations of a shader, {self.num_shader_lines}"
        shape = 1 + int(self.foreign[1:].argmax())
        return f"{_loops().tokens.SHAPES[shape]}, in {self.foreign[shape]} of {self.foreign.sum()} lines"

    @property
    def foreign_fraction(self) -> float:
        """The share of lines that no C or C++ has, 0-1; all of a shader."""
        if self.is_shader:
            return 1.0
        return float(self.foreign[1:].sum() / max(MIN_LINES, self.foreign.sum()))


def shapes_of(found: Lexed, is_c: bool) -> CodeShapes:
    """Count what the tokens of a text say. `is_c` says whether it was read as C."""
    words, flags, define = _words()
    loops, statements, _ = _loops()
    kinds, flagged, before = loops.describe_tokens(found.data, found.tokens, found.hashes, words, flags, define)
    statements.quote_arguments(found.data, found.tokens, found.hashes, kinds, define)
    counted = loops.data_bytes(found.data, found.tokens, found.hashes, kinds, before)
    foreign = np.zeros(2, np.int64)
    if is_c:
        foreign = loops.foreign_lines(found.data, found.tokens, kinds, flagged, before, _assembly(found, before))
    total, numeric, strings, tables = map(int, counted)
    strings += statements.framing_bytes(found.data, found.tokens, kinds, before)
    num_shader_lines = _num_shader_lines(found, kinds, before) if is_c else 0
    return CodeShapes(total, numeric, strings, tables, foreign, num_shader_lines)


def _num_shader_lines(found: Lexed, kinds: NDArray[np.uint8], before: NDArray[np.uint8]) -> int:
    """Return how many declarations only a language of shaders has."""
    loops = _loops()
    flags = loops.tokens.flags_of(found.hashes, *_shader_words())
    return int(loops.shaders.shader_lines(found.data, found.tokens, kinds, flags, before))


def _assembly(found: Lexed, before: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return what part of assembly each token is of. Most texts have none."""
    if "asm" not in found.text and "ASSEMBL" not in found.text:
        return np.zeros(len(before), np.uint8)
    from pipeline.stages.normalize.filters.assembly_parts import assembly_parts

    parts: NDArray[np.uint8] = assembly_parts(found.data, found.tokens, before, _loops().tokens.LINE)
    return parts


@cache
def _words() -> tuple[NDArray[np.uint64], NDArray[np.uint8], np.uint64]:
    """Return hashes of words and their flags as a table for the loops, and the hash of `define`."""
    loops = _loops().tokens
    table = _table_of(
        (loops.KEYWORD, _KEYWORDS),
        (loops.CONDITION, "if while for switch"),
        (loops.STARTER, _STARTERS),
        (loops.ALONE, _ALONE),
        (loops.ACCESS, "public private protected"),
        (loops.DIRECTIVE_NAME, _DIRECTIVES),
        (loops.AFTER_CONDITION, "constexpr consteval not each"),
        (loops.CONST, "const"),
        (
            loops.OF_TYPE,
            "object type data instance message service set input output val var range package interface optional",
        ),
        (loops.CONJUNCTION, "and or"),
    )
    return *table, CPP_LEXER.lex("define").hashes[0]


@cache
def _shader_words() -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Return hashes of the words of shaders, and their flags."""
    return _table_of(*_loops().shaders.WORDS)


def _table_of(*flagged: tuple[int, str]) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Return hashes of words and their flags as a table for the loops."""
    of_words: dict[int, int] = {}
    for flag, words in flagged:
        for value in CPP_LEXER.lex(words).hashes.tolist():
            of_words[value] = of_words.get(value, 0) | flag
    size = 1024
    assert len(of_words) * 3 < size
    hashes, flags = np.zeros(size, np.uint64), np.zeros(size, np.uint8)
    for value, flag in of_words.items():
        place = value % size
        while flags[place]:
            place = (place + 1) % size
        hashes[place], flags[place] = value, flag
    return hashes, flags


class _Loops(NamedTuple):
    tokens: Any
    statements: Any
    shaders: Any


@cache
def _loops() -> _Loops:
    """Return the modules of the compiled loops over tokens, statements and shaders, imported with the first text."""
    from pipeline.stages.normalize.filters import shader_lines, string_statements, text_loops

    return _Loops(text_loops, string_statements, shader_lines)
