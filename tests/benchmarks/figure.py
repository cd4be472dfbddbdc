"""A figure: what was measured, what was to be reached, and beside what."""

import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Figure:
    """`holds` says whether `value` reached `reach`; None is "not measured", as where the peer is not installed.

    `ratio` is value over peer_value, where there is a peer.
    """

    name: str
    value: float | None
    unit: str
    reach: str
    holds: bool | None
    peer: str | None = None
    peer_value: float | None = None
    ratio: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the figure for `--json`; `holds` is the string of the page where it is not measured."""
        return asdict(self) | {"holds": NOT_MEASURED if self.holds is None else self.holds, "machine": machine()}


Benchmark = Callable[[], list[Figure]]


def machine() -> str:
    """The machine in a few words: processor, cores, memory, Python."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    processor = names[0] if names else platform.processor()
    return f"{processor}, {os.cpu_count()} cores, {gigabytes:.0f} GiB, Python {platform.python_version()}"
