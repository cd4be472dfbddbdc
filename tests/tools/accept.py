"""`make accept`: the whole system in eight ordered phases. Stops at the first red; a part still to come is not run, and not green.

python -m tests.tools.accept [--json]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support.paths import ROOT

STORE = "{store}"
TO_COME = "to come"


@dataclass(frozen=True)
class Phase:
    """One phase: commands of this interpreter, run in order. `to_come` names what it waits for; then it is not run."""

    name: str
    commands: tuple[tuple[str, ...], ...] = ()
    to_come: str = ""
    limit_seconds: int = 900


def _tests(*paths: str) -> tuple[str, ...]:
    return ("-m", "pytest", "-m", "not gpu", *(f"tests/{path}" for path in paths))


def _in(folder: str, *subjects: str) -> list[str]:
    return [f"{folder}/test_{subject}.py" for subject in subjects]


_ROWS = ("pipeline/stages/tokenize/rows/test_pack", "pipeline/stages/tokenize/test_stage", "trainer/data/test_loader")
PHASES = (
    Phase("corpus", (_tests("test_golden.py", "pipeline/build/engines", "pipeline/build/made_corpus"),)),
    Phase(
        "tokenizer",
        (
            _tests(
                *_in("pipeline/stages/tokenize", "vocabulary", "encode"),
                "pipeline/stages/tokenize/columns/test_align.py",
            ),
        ),
    ),
    Phase("rows", (_tests(*(f"{name}.py" for name in _ROWS)),)),
    Phase("model", (_tests("trainer/model", "trainer/optim"),)),
    Phase("training end to end", (_tests("trainer/train/test_loop.py"),)),
    Phase(
        "determinism and resume",
        (
            ("-m", "pipeline", "build", "--recipe", "tiny", "--store", STORE, "--promote"),
            ("-m", "trainer", "accept", "--store", STORE, "--corpus", "tiny"),
        ),
    ),
    Phase(
        "sampling equals the full pass",
        (_tests("trainer/model/test_hybrid_decoding.py", "trainer/inference/test_sampling.py"),),
    ),
    Phase("demo in time", (("-m", "assets.demo", "--recipe", "tiny"),), limit_seconds=540),
)


@dataclass(frozen=True)
class Verdict:
    """Outcome of a phase: `green`, `red`, or `not run`."""

    name: str
    outcome: str
    detail: str
    seconds: float


def run_phases(phases: tuple[Phase, ...]) -> list[Verdict]:
    """Run the phases in order, up to the first red one."""
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="accept-") as folder:
        for number, phase in enumerate(phases, 1):
            verdicts.append(_run(phase, Path(folder)))
            verdict = verdicts[-1]
            text = f"{number}/{len(phases)}  {verdict.outcome:<8} {verdict.name:<32} {verdict.seconds:6.0f} s"
            print(f"{text}  {verdict.detail}", file=sys.stderr, flush=True)
            if verdict.outcome == "red":
                break
    return verdicts


def main() -> int:
    """Exit 0 only where nothing was red. What was not run is counted apart."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.accept", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the verdicts on stdout")
    options = parser.parse_args()
    verdicts = run_phases(PHASES)
    counts = {
        outcome: sum(verdict.outcome == outcome for verdict in verdicts) for outcome in ("green", "red", "not run")
    }
    counts["not run"] += len(PHASES) - len(verdicts)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()), file=sys.stderr)
    if options.json:
        print(json.dumps([asdict(verdict) for verdict in verdicts]))
    return int(counts["red"] > 0)


def _run(phase: Phase, folder: Path) -> Verdict:
    if phase.to_come:
        return Verdict(phase.name, "not run", f"{phase.to_come} is still {TO_COME}", 0.0)
    home = folder / "dagster"
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text().replace("./store", str(folder)))
    environment = {**os.environ, "SLUICE_STORE": str(folder / "store"), "DAGSTER_HOME": str(home)}
    started = time.monotonic()
    for command in phase.commands:
        line = [sys.executable, *(part.replace(STORE, str(folder / "store")) for part in command)]
        left = phase.limit_seconds - (time.monotonic() - started)
        try:
            code = subprocess.run(
                line, cwd=ROOT, env=environment, stdout=sys.stderr, check=False, timeout=left
            ).returncode
        except subprocess.TimeoutExpired:
            code = f"not done within {phase.limit_seconds} s"
        if code:
            detail = f"python {' '.join(line[1:])}: {code if isinstance(code, str) else f'exit {code}'}"
            return Verdict(phase.name, "red", detail, round(time.monotonic() - started, 1))
    return Verdict(phase.name, "green", "", round(time.monotonic() - started, 1))


if __name__ == "__main__":
    sys.exit(main())
