"""The blocks that datatrove has too, over the same texts: personal data out, signatures, near-duplicates."""

import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from pipeline.build.recipes import ROOT
from pipeline.stages.normalize.duplicates.duplicates import ComparedDocument, find_duplicates
from pipeline.stages.normalize.duplicates.shingles import hashes_for_minhash, shingle_hashes, signature
from pipeline.stages.normalize.params import VENDORED_ROOTS, DuplicateParams, ScrubParams
from pipeline.stages.normalize.scrub.scrub import Scrubber
from tests.benchmarks.figure import Figure
from tests.benchmarks.pipeline.slices import sample
from tests.tools.other_environments import absent, peer_python

NUM_BYTES, NUM_WARM_TEXTS = 1_500_000, 5
REACH_RATIO = 10.0
REACH = ">= 10 times datatrove"


def same_blocks() -> list[Figure]:
    """MB of text a second of one core's time. We look for every secret besides; datatrove for e-mail and network addresses."""
    texts = sample("quick", NUM_BYTES)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    _ours(texts[:NUM_WARM_TEXTS])  # loading code is not measured, nor is it for the peer
    ours = megabytes / _ours(texts)
    name, unit = "same-blocks", "MB/s of one core's time"
    interpreter = peer_python("datatrove")
    if interpreter is None:
        return [Figure(name, round(ours, 2), unit, REACH, None, absent("datatrove"))]
    theirs = megabytes / _datatrove(interpreter, texts)
    ratio = round(ours / theirs, 1)
    peer = "datatrove: PIIFormatter, MinHash 32 x 8"
    return [Figure(name, round(ours, 2), unit, REACH, ratio >= REACH_RATIO, peer, round(theirs, 3), ratio)]


def _ours(texts: list[str]) -> float:
    started = time.process_time()
    scrubber = Scrubber(ScrubParams())
    clean = [scrubber.scrub("a.cpp", text).text for text in texts]
    shingles = [shingle_hashes("a.cpp", text) for text in clean]
    signatures = np.array([signature(hashes_for_minhash(each), 1) for each in shingles], np.uint32)
    entries = [
        ComparedDocument(str(row), "a", f"{row:06}.cpp", "train", len(text), text, True, len(shingles[row]), row)
        for row, text in enumerate(clean)
    ]
    find_duplicates(entries, signatures, lambda name: shingles[int(name)], DuplicateParams(), VENDORED_ROOTS)
    return time.process_time() - started


def _datatrove(interpreter: Path, texts: list[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        for name, chosen in (("warm", texts[:NUM_WARM_TEXTS]), ("measured", texts)):
            (Path(folder) / name / "texts").mkdir(parents=True)
            lines = [json.dumps({"id": str(index), "text": text}) for index, text in enumerate(chosen)]
            (Path(folder) / name / "texts" / "all.jsonl").write_text("\n".join(lines) + "\n")
        command = [str(interpreter), "-m", "tests.benchmarks.pipeline.datatrove_blocks", folder]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(sum(json.loads(done.stdout.splitlines()[-1]).values()))
