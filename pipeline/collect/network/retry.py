"""How long a transfer is tried, and how much it may bring."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """How long a transfer is tried, and how much it may bring. The delay doubles; a transfer without a byte has stalled."""

    num_attempts: int = 5
    first_delay_seconds: float = 1.0
    stall_timeout_seconds: float = 30.0
    deadline_seconds: float = 3_600.0
    """Time for one attempt of a program that transfers on its own, such as git."""
    max_num_bytes: int = 4 * 1024**3
    """Bytes of one file. A server that sends more, or says that it will, is not listened to further."""
    sleep: Callable[[float], None] = time.sleep

    def wait(self, attempt: int) -> None:
        """Wait after the attempt of that number, counted from 1."""
        self.sleep(self.first_delay_seconds * 2 ** (attempt - 1))
