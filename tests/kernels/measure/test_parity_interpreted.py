"""The tests of `test_parity_edges.py` hold in Triton's interpreter too, which a process uses from its start or never."""

import os
import subprocess
import sys
from pathlib import Path

EDGES = Path(__file__).with_name("test_parity_edges.py")


def test_every_edge_holds_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-W", "ignore::RuntimeWarning", "-rs", str(EDGES)]
    done = subprocess.run(
        command, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, timeout=600, check=False
    )

    assert done.returncode == 0, done.stdout[-3000:]
    assert "skipped" not in done.stdout, "the interpreter was not on"
