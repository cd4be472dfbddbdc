"""Near-duplicates: the share that is found, documents that are found by mistake, and a million documents."""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import numpy as np

from pipeline.build.recipes import ROOT
from pipeline.stages.normalize.duplicates.duplicates import ComparedDocument, find_duplicates
from pipeline.stages.normalize.duplicates.minhash_bands import find_buckets
from pipeline.stages.normalize.duplicates.shingles import hashes_for_minhash, shingle_hashes, signature
from pipeline.stages.normalize.params import VENDORED_ROOTS, DuplicateParams
from tests.benchmarks.figure import Figure
from tests.benchmarks.pipeline.slices import place_digest, texts
from tests.support.plain_lexing.cpp_tokens import tokens
from tests.tools.other_environments import absent, peer_python

NUM_FILES = 3_000
REACH_HIGH, REACH_MIDDLE = 0.995, 0.94
REACH_SECONDS, REACH_GIBIBYTES = 60.0, 6.0

Place = tuple[str, str]


def near_duplicates() -> list[Figure]:
    """Recall of the candidates against the exact similarity of all pairs, and losers below their threshold."""
    return [figure for name in ("quick", "full") for figure in _judge(name, _chosen(name))]


def million_documents() -> list[Figure]:
    """A million made documents through banding, verification and components, in a process of their own."""
    command = [sys.executable, "-m", "tests.benchmarks.pipeline.duplicates.million"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    seconds, gibibytes = found["seconds"], found["gibibytes"]
    name = "million-documents"
    return [
        Figure(name, round(seconds, 1), "s, one core", "<= 60 s", seconds <= REACH_SECONDS),
        Figure(
            f"{name}/peak-memory",
            round(gibibytes, 2),
            "GiB, documents included",
            "<= 6 GiB",
            gibibytes <= REACH_GIBIBYTES,
        ),
        Figure(f"{name}/found", round(found["found"], 4), "of the planted copies", "reported", True),
        Figure(f"{name}/wrong", found["wrong"], "losers that are no copy of their keeper", "0", found["wrong"] == 0),
    ]


def _chosen(name: str) -> dict[Place, str]:
    """All files of the quick slice; of the full one 3,000, first those that share their name: the likeliest copies."""
    long = {place: text for place, text in texts(name).items() if len(text) <= 200_000 and len(tokens(text)) >= 30}
    different = {text: place for place, text in sorted(long.items(), reverse=True)}
    places = sorted(different.values())
    names = Counter(PurePosixPath(path).name for _, path in places)
    places.sort(key=lambda place: (names[PurePosixPath(place[1]).name] == 1, place_digest(place)))
    return {place: long[place] for place in (places[:NUM_FILES] if name == "full" else places)}


def _judge(name: str, chosen: dict[Place, str]) -> list[Figure]:
    exact = _exact(chosen)
    shingles = [shingle_hashes("a.cpp", text) for text in chosen.values()]
    signatures = np.array([signature(hashes_for_minhash(each), 1) for each in shingles], np.uint32)
    partners = find_buckets(signatures).later_partners()
    candidates = {(row, other) for row, others in partners for other in others.tolist()}
    figures, theirs = [], _candidates_of_text_dedup(chosen)
    for label, low, high, reach in (("0.8-1", 0.8, 1.01, REACH_HIGH), ("0.7-0.8", 0.7, 0.8, REACH_MIDDLE)):
        pairs = {pair for pair, similarity in exact.items() if low <= similarity < high}
        recall = len(pairs & candidates) / len(pairs) if pairs else 1.0
        unit = f"of {len(pairs)} pairs among {len(chosen)} files"
        figures.append(
            Figure(f"near-duplicates/{name}/{label}", round(recall, 4), unit, f">= {reach}", recall >= reach)
        )
        figures.append(_beside(f"near-duplicates/{name}/{label}/text-dedup", unit, pairs, theirs, recall))
    wrong = _num_below_threshold(chosen, shingles, signatures, exact)
    unit = "losers below their threshold"
    return [*figures, Figure(f"near-duplicates/{name}/wrong", wrong, unit, "0", wrong == 0)]


def _candidates_of_text_dedup(chosen: dict[Place, str]) -> set[tuple[int, int]] | None:
    """Return the pairs that text-dedup would compare, over the same shingles; None where it is not installed."""
    interpreter = peer_python("text-dedup")
    if interpreter is None:
        return None
    numbers: dict[str, int] = {}
    words = [
        " ".join(f"t{numbers.setdefault(token, len(numbers))}" for token in tokens(text)) for text in chosen.values()
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.json"
        path.write_text(json.dumps(words))
        line = [str(interpreter), str(Path(__file__).with_name("text_dedup_candidates.py")), str(path)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
    return {(first, second) for first, second in json.loads(done.stdout.splitlines()[-1])}


def _beside(
    name: str, unit: str, pairs: set[tuple[int, int]], theirs: set[tuple[int, int]] | None, recall: float
) -> Figure:
    if theirs is None:
        return Figure(name, None, unit, "reported", None, absent("text-dedup"))
    found = round(len(pairs & theirs) / len(pairs) if pairs else 1.0, 4)
    return Figure(name, found, unit, "reported", True, "ours", round(recall, 4))


def _exact(chosen: dict[Place, str]) -> dict[tuple[int, int], float]:
    """The exact Jaccard similarity of every pair from 0.65 on, by Python's sets of five-token tuples."""
    sets = [frozenset(_fives(tokens(text))) for text in chosen.values()]
    order = sorted(range(len(sets)), key=lambda index: len(sets[index]))
    found = {}
    for place, first in enumerate(order):
        for second in order[place + 1 :]:
            if len(sets[first]) < 0.65 * len(sets[second]):
                break  # no later one is similar either: they are sorted by size
            num_shared = len(sets[first] & sets[second])
            similarity = num_shared / (len(sets[first]) + len(sets[second]) - num_shared)
            if similarity >= 0.65:
                found[min(first, second), max(first, second)] = similarity
    return found


def _fives(words: list[str]) -> Iterable[int]:
    return (hash(tuple(words[at : at + 5])) for at in range(len(words) - 4))


def _num_below_threshold(
    chosen: dict[Place, str],
    shingles: list[np.ndarray],
    signatures: np.ndarray,
    exact: dict[tuple[int, int], float],
) -> int:
    params = DuplicateParams()
    entries = [
        ComparedDocument(str(row), source, path, "train", len(text), str(row), True, len(shingles[row]), row)
        for row, ((source, path), text) in enumerate(chosen.items())
    ]
    lost = find_duplicates(entries, signatures, lambda name: shingles[int(name)], params, VENDORED_ROOTS)
    limits = [
        params.min_jaccard_inside_source if each.source == each.keeper_source else params.min_jaccard_between_sources
        for each in lost
    ]
    pairs = [tuple(sorted((int(each.document_id), int(each.keeper_id)))) for each in lost]
    return sum(exact.get((first, second), 0.0) < limit for (first, second), limit in zip(pairs, limits, strict=True))
