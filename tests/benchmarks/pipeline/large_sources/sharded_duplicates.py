"""`python -m tests.benchmarks.pipeline.large_sources.sharded_duplicates make|compare|compare-at-once STORE [N]`: copies found.

Made documents of 44 words, of which three in ten are copies of others with 0 to 16 other words at the end, cleaned and signed as
sources of a store. Making them is not measured.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.build_context import BuildContext
from pipeline.build.engines.part_task import write_output
from pipeline.build.recipes import ROOT, CorpusParams
from pipeline.contracts.part import DUPLICATES_PART, MadePart, PartOutput
from pipeline.contracts.stage_report import StageReport
from pipeline.core.schema import arrow_schema, table_of
from pipeline.core.table_names import DOCUMENTS, DUPLICATES
from pipeline.lexing.language_lexers import lexer_of
from pipeline.stages.normalize import stage
from pipeline.stages.normalize.duplicates.contained_pairs import sampled_shingles
from pipeline.stages.normalize.duplicates.copyleft import COPYLEFT, CopyleftRecord
from pipeline.stages.normalize.duplicates.duplicates import SIGNATURES, SignatureRecord
from pipeline.stages.normalize.duplicates.shingles import NUM_PERMUTATIONS, hashes_for_minhash, run_hashes, signature
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store
from tests.benchmarks.figure import Figure
from tests.benchmarks.pipeline.large_sources.process_memory import ProcessMemory
from tests.benchmarks.pipeline.slices import scratch

NUM_DOCUMENTS = int(os.environ.get("SLUICE_NUM_SIGNATURES", "1000000"))
"""Documents that are compared. What is to be reached is of ten million, which need 30 GB of disk."""
NUM_JUDGED = 10_000_000
NUM_WORDS, NUM_SHINGLES, MAX_CHANGED = 44, 40, 16
COPIED = 0.3
NUM_IN_SOURCE = 10_000
REACH_SECONDS, REACH_GIBIBYTES = 360, 1.0
_SEED = 1


def sharded_duplicates() -> list[Figure]:
    """Seconds, memory and what is found among made documents, two workers; of a million also by one part at once."""
    root = scratch() / "signatures"
    _run("make", root)
    memory = ProcessMemory()
    found = _run("compare", root, memory)
    name, number = "sharded-duplicates", f"{NUM_DOCUMENTS / 1e6:g} million signatures"
    gibibytes, seconds = memory.largest / 2**30, found["seconds"]
    is_judged = NUM_DOCUMENTS >= NUM_JUDGED
    reach = f"<= {REACH_SECONDS} s" if is_judged else "reported"
    figures = [
        Figure(name, round(seconds, 1), f"s, {number}, 2 cores", reach, not is_judged or seconds <= REACH_SECONDS),
        Figure(
            f"{name}/peak-memory", round(gibibytes, 2), "GiB, largest process", "<= 1 GiB", gibibytes <= REACH_GIBIBYTES
        ),
        Figure(f"{name}/found", round(found["found"], 4), "of the planted copies", "reported", True),
        Figure(f"{name}/wrong", found["wrong"], "losers that are no copy of their keeper", "0", found["wrong"] == 0),
    ]
    if NUM_DOCUMENTS <= 1_000_000:
        different = int(_run("compare-at-once", root)["files"] != found["files"])
        figures.append(Figure(f"{name}/different", different, "files unlike those of one part", "0", not different))
    return figures


def main() -> int:
    """Make the sources, or find their copies and print what was found."""
    what, root = sys.argv[1], Path(sys.argv[2])
    number = int(sys.argv[3]) if len(sys.argv) > 3 else NUM_DOCUMENTS
    if what == "make":
        _make(root, number)
        return 0
    if what == "compare-at-once":
        stage.MAX_NUM_AT_ONCE = number
    print(json.dumps(_compare(root, number)))
    return 0


def _run(what: str, root: Path, memory: ProcessMemory | None = None) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.benchmarks.pipeline.large_sources.sharded_duplicates", what, str(root)]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True)
    if memory is not None:
        memory.watch(child)
    output = child.communicate()[0]
    if child.returncode:
        raise RuntimeError(f"{what} ended with {child.returncode}")
    found: dict[str, float] = json.loads(output or "{}")
    return found


def _compare(root: Path, number: int) -> dict[str, float]:
    """Run the parts of the stage that find copies, as a build does."""
    store = Store(root)
    ids = json.loads((root / "rules.json").read_text())
    rules = {name: MadePart(name, object_id, StageReport(*size), True) for name, (object_id, *size) in ids.items()}
    started = time.perf_counter()
    with open_build(BuildRequest("made", CorpusParams(), (), "a benchmark", num_workers=2), store) as build:
        context = BuildContext(STAGES["normalize"], build, None)
        links = stage.make_links(context, rules)
        linked = time.perf_counter()
        made, _ = context.make([stage.duplicates_part(context, rules, links)])
    seconds = time.perf_counter() - started
    stored = store.read(made[DUPLICATES_PART].object_id)
    files = hashlib.sha256(repr([(each.name, each.sha256) for each in stored.manifest.files]).encode()).hexdigest()
    lost = stored.table(DUPLICATES, ["path", "keeper_path", "source", "keeper_source"])
    losers, keepers = (
        np.array([int(path[:-4]) for path in lost[name].to_pylist()], np.int64) for name in ("path", "keeper_path")
    )
    origin, num_changed = _drawn(number)
    wrong = int((origin[losers] != origin[keepers]).sum())
    planted = _num_planted(origin, num_changed)
    facts = {"seconds": seconds, "links": linked - started, "found": len(losers) / planted, "wrong": wrong}
    return {**facts, "files": files}  # type: ignore[dict-item]


def _drawn(number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return of each document the one that it was copied from, and how many words at its end are others."""
    generator = np.random.default_rng(_SEED)
    num_first = number - int(number * COPIED)
    origin = np.concatenate([np.arange(num_first), generator.permutation(num_first)[: number - num_first]])
    changed = generator.integers(0, MAX_CHANGED + 1, number)
    changed[:num_first] = 0
    order = generator.permutation(number)  # so that the copy is the preferred one as often as not
    place = np.empty(number, np.int64)
    place[order] = np.arange(number)
    return place[origin][order], changed[order]


def _num_planted(origin: NDArray[np.int64], num_changed: NDArray[np.int64]) -> int:
    """Copies as similar to their original as their sources ask: of the same source 0.9, of different ones 0.7."""
    rows = np.arange(len(origin))
    similarity = (NUM_SHINGLES - num_changed) / (NUM_SHINGLES + num_changed)
    limits = np.where(rows // NUM_IN_SOURCE == origin // NUM_IN_SOURCE, 0.9, 0.7)
    return int(((similarity >= limits) & (origin != rows)).sum())


def _make(root: Path, number: int) -> None:
    store = Store(root)
    store.prepare()
    starts = range(0, number, NUM_IN_SOURCE)
    with ProcessPoolExecutor(2) as pool:
        made = dict(pool.map(partial(_make_source, root, number), starts))
    (root / "rules.json").write_text(json.dumps(dict(sorted(made.items()))))


def _make_source(root: Path, number: int, start: int) -> tuple[str, tuple[str, int, int]]:
    """Make one source of documents, and return its name, its id and its numbers of rows."""
    name, rows = f"s{start // NUM_IN_SOURCE:04d}", range(start, min(start + NUM_IN_SOURCE, number))
    origin, changed = _drawn(number)
    texts = [_text(row, int(origin[row]), int(changed[row])) for row in rows]
    tables = {
        DOCUMENTS: _documents(rows, texts),
        SIGNATURES: _signed(name, rows, texts),
        COPYLEFT: arrow_schema(CopyleftRecord).empty_table(),
    }
    store, folder = Store(root), root / "tmp" / f"made-{name}"
    write_output(folder, PartOutput(tables, StageReport(len(rows), len(rows))))
    identity = {"name": name, "function": "clean", "number": number}
    return name, (store.commit(folder, "normalize/rules", identity, {}), len(rows), len(rows))


def _documents(rows: range, texts: list[str]) -> pa.Table:
    """Return the columns of documents that are read."""
    columns = {"document_id": [_id(row) for row in rows], "path": [_path(row) for row in rows], "text": texts}
    found = {name: pa.array(values, pa.large_string()) for name, values in columns.items()}
    return pa.table({**found, "commit_hash": pa.nulls(len(rows), pa.large_string())})


def _path(row: int) -> str:
    return f"{row:08d}.cpp"


def _text(row: int, origin: int, num_changed: int) -> str:
    words = [f"w{origin * 64 + place}" for place in range(NUM_WORDS - num_changed)]
    words += [f"c{row * 64 + place}" for place in range(num_changed)]
    return f"// {row}\n{' '.join(words)}\n"


def _id(row: int) -> str:
    return hashlib.sha256(str(row).encode()).hexdigest()


def _signed(name: str, rows: range, texts: list[str]) -> pa.Table:
    tokens = lexer_of("a.cpp").token_hashes("".join(texts)).reshape(len(rows), NUM_WORDS)
    values = np.empty((len(rows), NUM_PERMUTATIONS), np.uint32)
    samples = []
    for place, each in enumerate(tokens):
        shingles = run_hashes(each, 5)
        values[place] = signature(hashes_for_minhash(shingles), 1)
        samples.append(sampled_shingles(shingles))
    number = len(rows)
    columns = {
        "document_id": [_id(row) for row in rows],
        "source": [name] * number,
        "path": [_path(row) for row in rows],
        "split": ["train"] * number,
        "num_bytes": [len(text) for text in texts],
        "text_sha256": [hashlib.sha256(text.encode()).hexdigest() for text in texts],
        "is_inherited": [True] * number,
        "num_tokens": [NUM_WORDS] * number,
        "num_shingles": [NUM_SHINGLES] * number,
        "num_body_shingles": [NUM_SHINGLES] * number,
        "signature": _lists(list(values)),
        "sample": _lists(samples),
    }
    return table_of(SignatureRecord, columns)


def _lists(values: list[NDArray[np.uint32]]) -> pa.Array:
    offsets = np.cumsum([0, *map(len, values)])
    kind = arrow_schema(SignatureRecord).field("signature").type
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(np.concatenate(values))).cast(kind)


if __name__ == "__main__":
    sys.exit(main())
