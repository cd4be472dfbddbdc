"""Process memory: what a build and its workers hold for themselves while it runs."""

import os
import subprocess
import threading
import time
from pathlib import Path


class ProcessMemory:
    """Peaks of the own memory of a process and its children, looked at four times a second: of all together, and of the largest."""

    def __init__(self) -> None:
        self.peak = 0
        self.largest = 0

    def watch(self, child: "subprocess.Popen[bytes]") -> None:
        """Look at a running process, which leads a session, until it ends."""
        threading.Thread(target=self._look, args=(child,), daemon=True).start()

    def _look(self, child: "subprocess.Popen[bytes]") -> None:
        while child.poll() is None:
            sizes = [*map(_resident, _session(child.pid)), 0]
            self.peak, self.largest = max(self.peak, sum(sizes)), max(self.largest, *sizes)
            time.sleep(0.25)


def _session(session: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.getsid(int(name)) == session:
                    found.append(int(name))
            except ProcessLookupError:
                continue
    return found


def _resident(process: int) -> int:
    """Bytes a process holds for itself: shared libraries and mapped files are not counted once a worker."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text().split()
    except OSError:
        return 0
    return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")
