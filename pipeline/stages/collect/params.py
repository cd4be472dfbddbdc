"""Settings of collect: CollectParams, the limits on a source; and RetryPolicy, which the data do not depend on."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

from pydantic import Field, model_validator

from pipeline.core.params import Params


class CollectParams(Params):
    """Limits on one source. Beyond `max_file_bytes` a file is dropped; beyond any other limit the source is refused.

    The largest pinned archive (36 MB packed) stays below a tenth of each limit but the depth.
    """

    max_members: int = Field(default=200_000, ge=1, le=10_000_000)
    """Number of members of an archive, or entries of a tree: files, links and folders."""

    max_total_bytes: int = Field(default=4 * 1024**3, ge=1024, le=1024**4)
    """Bytes of a whole archive once decompressed, or of all files of a tree."""

    max_compression_ratio: int = Field(default=200, ge=2, le=1_000_000)
    """Decompressed bytes for each packed byte, checked after the first MiB. C++ packs about 5 to 1, a bomb 1,000 to 1."""

    max_path_bytes: int = Field(default=1024, ge=16, le=65_536)
    """Length of a member's path in bytes of UTF-8."""

    max_depth: int = Field(default=64, ge=1, le=4096)
    """Folders above a file."""

    min_shard_bytes: int = Field(default=8 * 1024**2, ge=1, le=1024**4)
    """Bytes of files from which on a shard of a source ends at the next path whose hash says so. A source of less has one."""

    max_shard_bytes: int = Field(default=16 * 1024**2, ge=1, le=1024**4)
    """Bytes of files of one shard at most, unless a single file has more. A part of each stage holds one shard in memory."""

    max_file_bytes: int = Field(default=64 * 1024**2, ge=1, le=1024**3)
    """Bytes of one source or license file; a larger one is dropped as `too_large`."""

    with_changes: bool = Field(default=False, strict=True, exclude_if=lambda value: not value)
    """Make a document of each change of a file by a commit, of pins of git with `history = true`."""

    @model_validator(mode="after")
    def _fit_a_shard(self) -> Self:
        smallest, largest = self.min_shard_bytes, self.max_shard_bytes
        if smallest > largest:
            raise ValueError(
                f"min_shard_bytes: {smallest:,} is above max_shard_bytes {largest:,}: no shard has both sizes"
            )
        return self


@dataclass(frozen=True)
class RetryPolicy:
    """Attempts, delays and limits of a transfer. The delay doubles after each attempt."""

    num_attempts: int = 5
    first_delay_seconds: float = 1.0
    stall_timeout_seconds: float = 30.0
    """Time without a byte after which an attempt has failed."""
    deadline_seconds: float = 3_600.0
    """Time for one attempt of a program that transfers on its own, such as git."""
    max_num_bytes: int = 4 * 1024**3
    """Bytes of one file. A transfer that sends or declares more is refused."""
    sleep: Callable[[float], None] = time.sleep

    def attempts(self) -> Iterator[int]:
        """Yield the numbers of the attempts, from 1, with a delay before each but the first."""
        for attempt in range(1, self.num_attempts + 1):
            if attempt > 1:
                self.sleep(self.first_delay_seconds * 2 ** (attempt - 2))
            yield attempt
