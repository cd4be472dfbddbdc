"""Params of the stage enrich: the limits of a parse, and the share of degraded documents that a corpus may have."""

from pydantic import Field

from pipeline.core.params import Params
from pipeline.enrich.compiler.params import CompilerParams


class SyntaxParams(Params):
    """Limits of a parse. Each is a count and none a time, so that a text gets the same result on every machine."""

    max_num_bytes: int = Field(default=4_000_000, ge=1_000, le=100_000_000)
    """Bytes of the largest text that is parsed. A larger one goes on as a single chunk, degraded."""
    max_operations_per_byte: int = Field(default=64, ge=8, le=10_000)
    """Parser operations a byte before a parse is given up. Real files need about 1, endless templates 10."""
    max_error_fraction: float = Field(default=0.5, ge=0, le=1)
    """Share of a text's bytes inside syntax errors above which its structure counts as degraded."""
    max_chunk_bytes: int = Field(default=8_000, ge=200, le=1_000_000)
    """Bytes of the largest chunk, blanks not counted. A larger one is split where its parts begin."""
    blank_unbalanced_branches: bool = True
    """Parse a text with errors again without the #if branches whose brackets do not balance."""


class BuiltParams(Params):
    """Params of the part of a source whose pin has a `build` block."""

    syntax: SyntaxParams
    """Limits of the syntax parse."""
    compiler: CompilerParams
    """Limits of the compiler index."""


class EnrichParams(Params):
    """Params of the stage enrich."""

    syntax: SyntaxParams = SyntaxParams()
    """Limits of the syntax parse."""
    compiler: CompilerParams = CompilerParams()
    """Limits of the compiler index. It runs for sources whose pin has a `build` block, and for no others."""
    max_degraded_fraction: float = Field(default=0.2, ge=0, le=1)
    """Share of the documents whose structure may be degraded before the stage is blocked."""
