"""Renamed names: a build and a training in a process in which every class, function and enum member has another name.

    python -m tests.tools.renamed_names FOLDER      builds the made corpus in FOLDER and prints the ids as JSON

Names that a module reads while it is imported are not covered: `tests/test_renames.py` lists the files that read a name at all.
"""

import inspect
import json
import sys
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.store.store import Store
from tests.conftest import build_tiny
from tests.support.paths import ROOT

PACKAGES = ("pipeline", "trainer")
PROGRAMS = ("__main__.py", "sandbox_child.py", "unit_worker.py", "modeling_sluice.py")
"""Files that run in processes of their own, or need a library that may be missing."""


def rename_everything() -> int:
    """Give every class, function and enum member of the packages another name, and return how many there are."""
    renamed = 0
    for module in list(_modules()):
        for value in {id(each): each for each in vars(module).values()}.values():
            if getattr(value, "__module__", None) == module.__name__:
                renamed += _rename(value, f"Renamed{renamed}")
    return renamed


def _modules() -> Iterator[ModuleType]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.name not in PROGRAMS:
                place = path.relative_to(ROOT).with_suffix("")
                yield import_module(".".join(part for part in place.parts if part != "__init__"))


def _rename(value: Any, name: str) -> int:
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return 0
    value.__name__ = value.__qualname__ = name
    if inspect.isclass(value) and issubclass(value, Enum):
        for number, member in enumerate(value):
            member._name_ = f"RENAMED_{number}"
    return 1


def train(store: Store) -> dict[str, Any]:
    """Train two steps on the made corpus and return what identifies them."""
    from trainer.checkpoint.checkpoint import save
    from trainer.config.training_config import training_recipe
    from trainer.train.session import RunInputs
    from trainer.train.training_state import Training

    inputs = RunInputs(store.ref("tiny", "candidate") or "", training_recipe("tiny"), 42)
    training = Training(store, inputs)
    for _ in range(2):
        training.step(training.loader.batch_at(training.position, 4))
    checkpoint_id = save(store, store.root / "tmp", training.checkpoint())
    return {"certificate": training.history.certificate, "checkpoint_id": checkpoint_id}


def main(folder: Path) -> None:
    """Build and train with other names, and print the ids."""
    num_renamed = rename_everything()
    results = build_tiny(folder)
    stages = [[result.object_id, dict(result.parts)] for result in results]
    print(json.dumps({"num_renamed": num_renamed, "stages": stages, "run": train(Store(folder))}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
