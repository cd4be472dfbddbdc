"""Mutations by name of the consumer: a trainer whose code differs, on an unchanged snapshot."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial

from tests.mutations import plant
from tests.mutations.bench import CORPUS, Bench
from tests.mutations.mutation import Kind
from tests.support.paths import ROOT


def _other_trainer(name: str, before: str, after: str, bench: Bench) -> None:
    """Build an unchanged snapshot with a trainer one of whose files differs: a copy of the code, in processes of its own."""
    tree = bench.folder / "tree"
    for package in ("pipeline", "trainer", "kernels"):
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    file = tree / "trainer" / name
    if before not in file.read_text():
        raise plant.NotPlantedError(f"{before} in {name}")
    file.write_text(file.read_text().replace(before, after, 1))
    line = [sys.executable, "-m", "pipeline", "build", "--recipe", CORPUS, "--store", str(bench.store.root)]
    done = subprocess.run([*line, "--promote", "--offline"], cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode:
        bench.say("error:consumer", done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "")


CONSUMER_CASES: dict[str, tuple[Kind, str, tuple[str, ...], Callable[[Bench], None]]] = {
    "3-trainer-raises": (
        Kind.TRAINER,
        "a step that raises, with an unchanged snapshot",
        ("error:consumer",),
        partial(_other_trainer, "train/step.py", "import torch\n", "raise RuntimeError('planted')\n"),
    ),
    "3-loader-reads-one-row": (
        Kind.TRAINER,
        "a loader that reads row 0 of its source for every row",
        ("error:consumer",),
        partial(
            _other_trainer,
            "data/mapped_rows.py",
            "sources[source].locate(rows_R[mine])",
            "sources[source].locate(rows_R[mine] * 0)",
        ),
    ),
    "3-loader-alters-an-id": (
        Kind.TRAINER,
        "a loader that gives a model another id in each row",
        ("error:consumer",),
        partial(
            _other_trainer,
            "data/row_layout.py",
            "    targets_BT[:, :-1]",
            "    ids_BT[:, 3] = ids_BT[:, 4]\n    targets_BT[:, :-1]",
        ),
    ),
}
