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


_READS_ALL = "        for entry in snapshot.sources\n    ]\n    for source"
_CHOSEN = "    chosen = select_rows(sources, selection"
_PSM = "runs += (values[done:first], prefix, values[first:begin], suffix, values[end:stop])"
_SPM = "runs += (values[done:first], both, values[end:stop], middle, values[first:end])"
_LAYOUT, _LOADER, _OPENED = "data/row_layout.py", "data/loader.py", "data/open_loader.py"
_MASKED_ENDS = "    mask_BT[np.divmod(ends, layout.row_length)] = False\n"

_LOADER_FAULTS: dict[str, tuple[str, str, str, str]] = {
    "reads-one-row": (
        "reads row 0 of its source for every row",
        "data/mapped_rows.py",
        "sources[source].locate(rows_R[mine])",
        "sources[source].locate(rows_R[mine] * 0)",
    ),
    "alters-an-id": (
        "gives a model another id in each row",
        _LAYOUT,
        "    targets_BT[:, :-1]",
        "    ids_BT[:, 3] = ids_BT[:, 4]\n    targets_BT[:, :-1]",
    ),
    "reads-two-sources": (
        "reads the first two sources alone",
        _OPENED,
        _READS_ALL,
        _READS_ALL.replace("sources\n", "sources[:3]\n"),
    ),
    "reads-half-the-rows": (
        "never reads the second half of each source's rows",
        _OPENED,
        _CHOSEN,
        "    half = [source.rows.subset(__import__('numpy').arange(len(source.rows) // 2)) for source in sources]\n"
        "    sources = [Source(each.name, rows, each.weight) for each, rows in zip(sources, half)]\n" + _CHOSEN,
    ),
    "has-equal-shares": (
        "draws from all sources alike",
        "data/mixture.py",
        "    whole = [int(amount * scale) for amount in amounts]",
        "    whole = [1 for amount in amounts]",
    ),
    "has-one-order": (
        "reads a source's rows in one order in all epochs",
        _LOADER,
        "key = keyed(self.config.seed, self._source_words[source], epoch)",
        "key = keyed(self.config.seed, self._source_words[source], 0)",
    ),
    "counts-one-epoch": (
        "says that each row is of the first epoch",
        _LOADER,
        "epochs_R = turns_R + self.start.epochs + 1",
        "epochs_R = turns_R * 0 + self.start.epochs + 1",
    ),
    "places-differ": (
        "reads other rows than its places say",
        _LOADER,
        "self.locate(self.start.position + number * self.block_rows, self.block_rows)",
        "self.locate(self.start.position + number * self.block_rows + 1, self.block_rows)",
    ),
    "targets-are-inputs": (
        "gives the inputs as targets",
        _LAYOUT,
        "targets_BT[:, :-1] = ids_BT[:, 1:]",
        "targets_BT[:, :-1] = ids_BT[:, :-1]",
    ),
    "trains-across-documents": ("takes the loss of the last slot of a document", _LAYOUT, _MASKED_ENDS, ""),
    "trains-on-padding": (
        "takes the loss of every slot",
        _LAYOUT,
        _MASKED_ENDS,
        "    mask_BT[...] = True\n",
    ),
    "masks-a-slot": (
        "leaves the first slot of each row out of the loss",
        _LAYOUT,
        _MASKED_ENDS,
        _MASKED_ENDS + "    mask_BT[:, 0] = False\n",
    ),
    "joins-documents": (
        "gives all slots one document id",
        _LAYOUT,
        "doc_ids_BT[...] = np.repeat(values, lengths).reshape(ids_BT.shape)",
        "doc_ids_BT[...] = 1",
    ),
    "swaps-prefix-and-suffix": (
        "swaps prefix and suffix of infilled documents",
        _LAYOUT,
        _PSM,
        _PSM.replace("first:begin", "X").replace("end:stop", "first:begin").replace("X", "end:stop"),
    ),
    "swaps-in-the-joint-form": (
        "gives the joint form of infilling the middle before the suffix",
        _LAYOUT,
        _SPM,
        _SPM.replace("end:stop", "X").replace("first:end", "end:stop").replace("X", "first:end"),
    ),
    "swaps-sentinels": (
        "writes the sentinels of suffix and middle for each other",
        _LAYOUT,
        "prefix, middle, suffix = sentinels",
        "prefix, suffix, middle = sentinels",
    ),
}
"""Faults of the loader by name: what it does, its file, and the text that is replaced there."""

CONSUMER_CASES: dict[str, tuple[Kind, str, tuple[str, ...], Callable[[Bench], None]]] = {
    "3-trainer-raises": (
        Kind.TRAINER,
        "a step that raises, with an unchanged snapshot",
        ("error:consumer",),
        partial(_other_trainer, "train/step.py", "import torch\n", "raise RuntimeError('planted')\n"),
    ),
    **{
        f"3-loader-{name}": (
            Kind.TRAINER,
            f"a loader that {planted}",
            ("error:consumer",),
            partial(_other_trainer, *edit),
        )
        for name, (planted, *edit) in _LOADER_FAULTS.items()
    },
}
