"""The identity of the consumer holds the trainer's code and all that it imports, and nothing else of the project."""

import shutil
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from pipeline.stages.verify import consumer
from pipeline.stages.verify.consumer import consumer_code, consumer_identity
from tests.support.paths import ROOT

LOAD_ALL = """
import importlib, pkgutil, sys
import trainer
for module in pkgutil.walk_packages(trainer.__path__, "trainer."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
print("\\n".join(file for file in files if file))
"""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the project's packages, to be edited."""
    for package in ("trainer", "kernels", "pipeline"):
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "vocabularies")
        )
    return tmp_path


def test_every_file_that_the_trainer_loads_is_in_it_and_it_is_found_without_being_imported() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOAD_ALL], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [Path(line) for line in loaded.stdout.splitlines()]
    ours = {
        path.relative_to(ROOT).as_posix() for path in paths if path.is_relative_to(ROOT) and ".venv" not in path.parts
    }

    assert len(ours) > 100
    assert ours <= consumer_code(ROOT).keys()
    assert {"torch", "numpy", "pyarrow", "safetensors"} <= consumer_identity(ROOT)["libraries"].keys()
    script = "from pipeline.stages.verify.consumer import *; import sys; consumer_identity(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"torch", "trainer", "kernels"} & set(done.stdout.split())


@pytest.mark.parametrize(
    "place",
    [
        "trainer/data/loader.py",
        "trainer/new.toml",
        "kernels/rms_norm.py",
        "pipeline/core/durable.py",
        "pipeline/store/log.py",
    ],
)
def test_a_change_of_its_code_is_another_consumer(copied: Path, place: str) -> None:
    before = consumer_identity(copied)
    assert consumer_identity(copied) == before
    with (copied / place).open("a") as file:
        file.write("\n")

    assert consumer_identity(copied)["code"] != before["code"]


def test_code_that_it_does_not_import_is_no_part_of_it(copied: Path) -> None:
    before = consumer_identity(copied)
    for place in ("pipeline/stages/verify/stage.py", "pipeline/cli/main.py", "trainer/__pycache__/loader.pyc"):
        (copied / place).parent.mkdir(exist_ok=True)
        (copied / place).write_text("another")

    assert consumer_identity(copied) == before


def test_another_version_of_a_library_or_of_python_is_another_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    before = consumer_identity(ROOT)
    monkeypatch.setattr(consumer, "_version", lambda name: "0.1" if name == "torch" else None)
    monkeypatch.setattr(consumer, "python_version", lambda: "4.0")

    after = consumer_identity(ROOT)
    assert after["libraries"] == {"torch": "0.1"}
    assert after["code"] == before["code"]
    assert after["python"].endswith("4.0")


def test_every_library_that_is_installed_has_its_version_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    known = consumer._version
    monkeypatch.setattr(consumer, "_version", lambda name: asked.append(name) or known(name))  # type: ignore[func-returns-value]
    libraries = consumer_identity(ROOT)["libraries"]

    installed = packages_distributions().keys() - sys.stdlib_module_names
    assert libraries.keys() == installed & {*asked}
    assert "re2" in libraries
