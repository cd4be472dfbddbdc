"""The doctor: the environment of its process, and the operations that it tries."""

import json
import subprocess
import sys


def test_the_doctor_promises_nothing_where_torch_began_in_another_environment() -> None:
    code = "import json; from trainer.proof import doctor; doctor._trials = doctor.try_attention = lambda device: []; "
    code += "found = doctor.diagnose(); print(json.dumps([found.is_promised, found.broken_promises]))"
    line = [sys.executable, "-c", code]
    late = subprocess.run(line, capture_output=True, text=True, check=True, env={"PATH": "", "HOME": "/tmp"}, cwd=".")
    doctor = [sys.executable, "-m", "trainer", "doctor", "--json"]
    right = json.loads(subprocess.run(doctor, capture_output=True, text=True, check=True).stdout)

    is_promised, reasons = json.loads(late.stdout)
    assert is_promised is False
    assert any("PYTHONHASHSEED was not set when this process began" in reason for reason in reasons)
    assert right["is_promised"] is True
    assert {trial["piece"] for trial in right["trials"]} >= {"gemm", "attention", "embedding", "cumsum", "block M"}
