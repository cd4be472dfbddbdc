"""A figure: what was measured, what was to be reached, and beside what."""

import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """`holds` says whether `value` reached `reach`. `ratio` is value over peer_value, where there is a peer."""

    name: str
    value: float
    unit: str
    reach: str
    holds: bool
    peer: str | None = None
    peer_value: float | None = None
    ratio: float | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"machine": machine()}


Benchmark = Callable[[], list[Figure]]


def machine() -> str:
    """The machine in a few words: processor, cores, memory, Python."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    processor = names[0] if names else platform.processor()
    return f"{processor}, {os.cpu_count()} cores, {gigabytes:.0f} GiB, Python {platform.python_version()}"
