"""Parameters of the compiler index: limits of configuring a source and of compiling a unit."""

from pydantic import Field

from pipeline.core.params import Params
from pipeline.sandbox.sandbox import Limits

_WALL_PER_CPU = 5
"""Seconds on the wall for each of the processor: they only end what sleeps, so that a busy machine changes nothing."""


class CompilerParams(Params):
    """Limits of the compiler index. Times are processor time."""

    configure_cpu_seconds: int = Field(default=300, ge=1, le=36_000)
    """Seconds that each process of cmake and its scripts may compute."""
    unit_cpu_seconds: int = Field(default=120, ge=1, le=36_000)
    """Seconds that one unit may be parsed. Real units need 1 to 5."""
    unit_memory_megabytes: int = Field(default=3072, ge=256, le=1_000_000)
    """Address space of the process that parses one unit. Real units need 300 to 800."""

    def unit_limits(self) -> Limits:
        """The limits of one unit."""
        wall = self.unit_cpu_seconds * _WALL_PER_CPU
        return Limits(self.unit_cpu_seconds, wall, self.unit_memory_megabytes << 20)

    def configure_limits(self) -> Limits:
        """The limits of configuring."""
        return Limits(self.configure_cpu_seconds, self.configure_cpu_seconds * _WALL_PER_CPU, 16 << 30)
