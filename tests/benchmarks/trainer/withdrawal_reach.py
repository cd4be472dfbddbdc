"""Reach of withdrawals: checkpoints that have read a source in every way that training has, and those that `withdraw` leaves out.

Each snapshot is of one source of its own, so that a row of the table says by its construction which sources its run has read. Then
each source is withdrawn, by its name, by its file and by the digest of its bytes, and the checkpoints that are named are compared.
"""

import shutil
import tempfile
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from pipeline.build.withdrawal import withdraw
from pipeline.core.digests import text_sha256
from pipeline.core.params import canonical_json
from pipeline.core.table_names import DOCUMENTS, FILES, TOKENS, TRAINING_ROWS
from pipeline.formats.snapshot_json import SNAPSHOT_FILE, SNAPSHOT_KIND
from pipeline.formats.tables import write_table
from pipeline.store.store import Store
from tests.benchmarks.figure import Figure
from tests.support.made.made_rows import rows_of
from tests.support.made.made_snapshot import commit_made
from trainer.__main__ import main
from trainer.inference.transformers_export import export_model

SOURCES = ("amber", "birch", "cedar", "dogwood")
NUM_ROWS = 4
"""Rows of a source: an epoch of one step."""


class Reach(NamedTuple):
    """The ways of reading that were tried, the pairs of a checkpoint and a source that it read, and those that were wrong."""

    num_ways: int
    num_pairs: int
    missed: list[str]
    named_wrongly: list[str]


def withdraw_reach() -> list[Figure]:
    """Withdraw each source of a store in which runs have read sources in every way."""
    with tempfile.TemporaryDirectory() as folder:
        found = reach(Path(folder))
    asked = "times that a source was withdrawn which a checkpoint had read"
    unit = f"checkpoints missed, {found.num_pairs} {asked}, in one of {found.num_ways} ways"
    wrong = len(found.named_wrongly)
    return [
        Figure("withdraw-reach", len(found.missed), unit, "0", not found.missed),
        Figure("withdraw-reach/named-wrongly", wrong, "checkpoints named that have not read it", "0", not wrong),
    ]


def reach(folder: Path) -> Reach:
    """Train in every way, withdraw each source by each kind of selector, each in a copy, and compare."""
    trained = _Trained(folder)
    trained.read_in_every_way()
    counts, missed, wrong = Counter[str](), list[str](), list[str]()
    for store, reads in ((trained.store, trained.reads), (trained.elsewhere, trained.reads_elsewhere)):
        for source in SOURCES:
            for text in (source, f"{source}/{source}.c", f"sha256:{text_sha256(source)}"):
                copy = Store(shutil.copytree(store.root, folder / "copy"))
                named = {each.object_id for each in withdraw(copy, text, "a benchmark") if each.kind == "checkpoint"}
                shutil.rmtree(copy.root)
                for way, checkpoint_id, sources in reads:
                    counts["pairs"] += source in sources
                    if source in sources and checkpoint_id not in named:
                        missed.append(f"{way}: {text}")
                    # In a store without its snapshots, a checkpoint is named as one of which nobody can tell.
                    if source not in sources and checkpoint_id in named and store is trained.store:
                        wrong.append(f"{way}: {text}")
    return Reach(len(trained.reads) + len(trained.reads_elsewhere), counts["pairs"], missed, wrong)


class _Trained:
    """A store with a snapshot of each source, the runs over them, and a second store that weights and a checkpoint were sent to."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store, self.elsewhere = folder, Store(folder / "store"), Store(folder / "elsewhere")
        self.snapshots = {source: _commit(self.store, source) for source in SOURCES}
        _commit(self.elsewhere, SOURCES[-1])
        for source in SOURCES[:-1]:
            _commit_collected(self.elsewhere, source)
        self.reads: list[tuple[str, str, frozenset[str]]] = []
        self.reads_elsewhere: list[tuple[str, str, frozenset[str]]] = []

    def read_in_every_way(self) -> None:
        """Train once for each way in which a checkpoint can have read a source."""
        for way in (self._own, self._followed, self._resumed, self._initialized, self._sent):
            way()

    def _own(self) -> None:
        amber, birch, cedar = (self.snapshots[source] for source in SOURCES[:3])
        self._train("snapshot", "amber", "--snapshot", amber)
        self._train("snapshot, by the name of its ref", "amber", "--corpus", "amber")
        self._train("mixture of snapshots", "amber birch", "--mix", f"{amber}=1", "--mix", f"{birch}=2")
        self._train("shares of a snapshot", "cedar", "--snapshot", cedar, "--mix", "source:cedar=1")
        self._train("selected rows", "cedar", "--snapshot", cedar, "--only", "source=cedar")
        mixed = ("--mix", f"{birch}=1", "--mix", f"{cedar}=1", "--only", "license=MIT")
        self._train("selected rows of a mixture", "birch cedar", *mixed)
        held_out = ("--snapshot", birch, "--evaluate-every", "1", "--evaluate-rows", "1")
        self._train("held-out rows beside", "birch", *held_out)

    def _followed(self) -> None:
        amber = self.snapshots["amber"]
        self._point("amber", "birch")
        self._train(
            "followed ref", "amber birch", "--snapshot", amber, "--corpus", "amber", "--follow", "live", steps=2
        )
        self._point("amber", "cedar")
        line = ("--corpus", "amber", "--follow", "live", "--resume", "latest", "--run", "followed-ref")
        self._train("followed ref again", "amber birch cedar", *line, steps=4)
        line = ("--follow", self._id("followed ref again"))
        self._train("followed checkpoint", "amber birch cedar", *line, steps=4)
        self._point("amber", "amber")

    def _resumed(self) -> None:
        birch, cedar, dogwood = (self.snapshots[source] for source in SOURCES[1:])
        resume = ("--resume", self._id("snapshot"), "--allow-drift", "snapshot_id")
        self._train("resume with another snapshot", "amber birch", *resume, "--snapshot", birch, steps=2)
        resume = ("--resume", self._id("resume with another snapshot"), "--allow-drift", "snapshot_id")
        self._train("resume with a third", "amber birch cedar", *resume, "--snapshot", cedar, steps=3)
        resume = ("--resume", self._id("mixture of snapshots"), "--allow-drift", "mixture")
        mixed = ("--mix", f"{self.snapshots['amber']}=1", "--mix", f"{dogwood}=1")
        drift = (*resume, "--allow-drift", "snapshot_id", *mixed)
        self._train("resume with another mixture", "amber birch dogwood", *drift, steps=2)
        resume = ("--resume", self._id("followed ref again"), "--allow-drift", "snapshot_id")
        self._train("resume after a followed ref", "amber birch cedar dogwood", *resume, "--snapshot", dogwood, steps=5)
        again = ("--resume", self._id("snapshot"), "--corpus", "amber")
        self._train("resume of another run", "amber", *again, steps=2)

    def _initialized(self) -> None:
        for way, sources in {way: sources for way, _, sources in self.reads}.items():
            line = ("--snapshot", self.snapshots["dogwood"], "--init-from", self._id(way))
            self._train(f"weights of {way}", " ".join({*sources, "dogwood"}), *line)
        line = ("--snapshot", self.snapshots["dogwood"], "--init-from", self._id("weights of mixture of snapshots"))
        self._train("weights of weights", "amber birch dogwood", *line)
        export_model(self.store, self._id("weights of followed ref"), self.folder / "exported")
        line = ("--snapshot", self.snapshots["dogwood"], "--init-from", str(self.folder / "exported"))
        self._train("weights of a folder", "amber birch dogwood", *line)

    def _sent(self) -> None:
        sent = self._id("weights of resume with another mixture")
        self._run("checkpoints", "export", sent, str(self.folder / "sent.tar"), "--store", str(self.store.root))
        self._run("checkpoints", "import", str(self.folder / "sent.tar"), "--store", str(self.elsewhere.root))
        self.reads_elsewhere.append(("imported checkpoint", sent, frozenset({"amber", "birch", "dogwood"})))
        line = ("--corpus", "dogwood", "--init-from", str(self.folder / "exported"))
        self._train("weights of a folder elsewhere", "amber birch dogwood", *line, is_elsewhere=True)
        line = ("--corpus", "dogwood", "--init-from", sent)
        self._train("weights of an imported checkpoint", "amber birch dogwood", *line, is_elsewhere=True)

    def _train(self, way: str, sources: str, *line: str, steps: int = 1, is_elsewhere: bool = False) -> None:
        """Train to a step and note the sources that the last checkpoint has read."""
        store, reads = (self.elsewhere, self.reads_elsewhere) if is_elsewhere else (self.store, self.reads)
        run = way.replace(" ", "-").replace(",", "")
        named = () if "--run" in line else ("--run", run)
        until = ("--stop-after", str(steps), "--save-every", "1", "--telemetry", "off", "--device", "cpu")
        out = ("--out", str(self.folder / "out" / run))
        self._run("train", "--store", str(store.root), *out, *named, *until, *line)
        checkpoint_id = store.ref(f"runs/{line[line.index('--run') + 1] if '--run' in line else run}", "latest")
        reads.append((way, checkpoint_id or "", frozenset(sources.split())))

    def _id(self, way: str) -> str:
        """Return the last checkpoint of a way."""
        return next(checkpoint_id for name, checkpoint_id, _ in self.reads if name == way)

    def _point(self, corpus: str, source: str) -> None:
        """Set `live` of a corpus to the snapshot of a source."""
        self.store.move_ref(corpus, "live", self.store.ref(corpus, "live"), self.snapshots[source], "a benchmark")

    def _run(self, *line: str) -> None:
        """Run a command of the trainer in this process. Raises RuntimeError where it fails."""
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as words:
            code = main(list(line))
        if code:
            raise RuntimeError(f"`trainer {' '.join(line)}` ended with {code}: {words.getvalue()}")


def _commit(store: Store, source: str) -> str:
    """Commit a snapshot of made rows of one source, with the one document that they are of, and make it live."""
    rules_id, collected_id = _commit_rules(store, source), _commit_collected(store, source)
    made = store.read(commit_made(store))
    with store.writer(source, "made rows") as scratch:
        rows, snapshot = scratch / "rows", scratch / "snapshot"
        rows.mkdir()
        snapshot.mkdir()
        for split, place in TRAINING_ROWS.items():
            write_table(rows, place, _with_group(rows_of(NUM_ROWS, 100 if split == "train" else 800)))
        write_table(rows, TOKENS, pa.table({"document_id": [source], "path": [f"{source}.c"]}))
        rows_id = store.commit(rows, "tokenize/part", {"name": source}, {"rules": rules_id, "read": collected_id})
        content = made.json(SNAPSHOT_FILE)
        content["sources"][0] |= {"name": source, "rows": rows_id, "num_documents": 1}
        content["sources"][0] |= {"num_rows_train": NUM_ROWS, "num_rows_held_out": NUM_ROWS}
        for name in ("tokenizer.json", "vocabulary.toml"):
            (snapshot / name).write_bytes(made.file(name).read_bytes())
        (snapshot / SNAPSHOT_FILE).write_bytes(canonical_json(content))
        inputs = {f"rows/{source}": rows_id, f"rules/{source}": rules_id}
        snapshot_id = store.commit(snapshot, SNAPSHOT_KIND, {"name": source}, inputs)
    store.move_ref(source, "live", None, snapshot_id, "made rows")
    return snapshot_id


def _with_group(rows: pa.Table) -> pa.Table:
    """Return rows with a lane and a license, by which they can be selected."""
    for name, value in (("provenance", "syntax_only"), ("license", "MIT"), ("license_class", "permissive")):
        place = rows.schema.get_field_index(name)
        column = pa.array([value] * rows.num_rows, pa.large_string())
        rows = (
            rows.append_column(name, column) if place < 0 else rows.set_column(place, rows.schema.field(name), column)
        )
    return rows


def _commit_rules(store: Store, source: str) -> str:
    with store.writer(source, "made documents") as scratch:
        folder = scratch / "rules"
        folder.mkdir()
        write_table(folder, DOCUMENTS, pa.table({"document_id": [source], "blob_sha256": [text_sha256(source)]}))
        return store.commit(folder, "normalize/rules", {"name": source}, {})


def _commit_collected(store: Store, source: str) -> str:
    with store.writer(source, "made files") as scratch:
        folder = scratch / "collected"
        folder.mkdir()
        file = {"path": [f"{source}.c"], "blob_sha256": [text_sha256(source)], "content": [source.encode()]}
        write_table(folder, FILES, pa.table(file))
        return store.commit(folder, "collect/part", {"name": source}, {})
