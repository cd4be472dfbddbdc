"""The figure `definitions`: seconds of processor until a new process has loaded the code location."""

import subprocess
import sys

from tests.benchmarks.figure import Figure
from tests.benchmarks.reference_work import processor_figure, scale
from tests.support.paths import ROOT

REACH_SECONDS = 2.0
PROGRAM = "import time; from assets.definitions import defs; defs.get_repository_def(); print(time.process_time())"


def definitions() -> list[Figure]:
    """Load them in three processes and take the least."""
    runs = [
        subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, check=True) for _ in range(3)
    ]
    seconds = min(float(run.stdout) for run in runs) / scale()
    return [processor_figure("definitions", seconds, REACH_SECONDS)]
