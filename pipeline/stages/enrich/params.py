"""Params of the stage enrich: the limits of a parse and of the compiler index, and the share of degraded documents."""

from typing import TYPE_CHECKING

from pydantic import Field

from pipeline.core.params import Params

if TYPE_CHECKING:
    from pipeline.sandbox.sandbox import Limits

_WALL_PER_CPU = 5
"""Seconds on the wall for each of the processor: they only end what sleeps, so that a busy machine changes nothing."""


class SyntaxParams(Params):
    """Limits of a parse. Each is a count and none a time, so that a text gets the same result on every machine."""

    max_num_bytes: int = Field(default=4_000_000, ge=1_000, le=100_000_000)
    """Bytes of the largest text that is parsed. A larger one is a single chunk, degraded."""
    max_operations_per_byte: int = Field(default=64, ge=8, le=10_000)
    """Parser operations a byte before a parse is given up. Real files need about 1, endless templates 10."""
    max_error_fraction: float = Field(default=0.5, ge=0, le=1)
    """Share of a text's bytes inside syntax errors above which its structure counts as degraded."""
    max_chunk_bytes: int = Field(default=8_000, ge=200, le=1_000_000)
    """Bytes of the largest chunk, blanks not counted. A larger one is split where its parts begin."""
    blank_unbalanced_branches: bool = True
    """Parse a text with errors again without the #if branches whose brackets do not balance."""


class CompilerParams(Params):
    """Limits of the compiler index. Times are processor time."""

    configure_cpu_seconds: int = Field(default=300, ge=1, le=36_000)
    """Seconds that each process of cmake and its scripts may compute."""
    unit_cpu_seconds: int = Field(default=120, ge=1, le=36_000)
    """Seconds that one unit may be parsed. Real units need 1 to 5."""
    unit_memory_megabytes: int = Field(default=3072, ge=256, le=1_000_000)
    """Address space of the process that parses one unit. Real units need 300 to 800."""

    def unit_limits(self) -> "Limits":
        """Return the limits of one unit."""
        from pipeline.sandbox.sandbox import Limits

        wall = self.unit_cpu_seconds * _WALL_PER_CPU
        return Limits(self.unit_cpu_seconds, wall, self.unit_memory_megabytes << 20)

    def configure_limits(self) -> "Limits":
        """Return the limits of configuring."""
        from pipeline.sandbox.sandbox import Limits

        return Limits(self.configure_cpu_seconds, self.configure_cpu_seconds * _WALL_PER_CPU, 16 << 30)


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
    max_degraded_fraction: float = Field(default=0.2, ge=0, lt=1)
    """Share of the documents whose structure may be degraded before the stage is blocked."""
