"""MinHash signatures beside datasketch and rensa, on the same shingles."""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from datasketch import MinHash
from numpy.typing import NDArray

from pipeline.lexing.lexer import lexed
from pipeline.stages.normalize.duplicates.shingles import (
    NUM_PERMUTATIONS,
    hashes_for_minhash,
    shingle_hashes,
    signature,
)
from tests.benchmarks.figure import Figure
from tests.benchmarks.pipeline.slices import sample
from tests.support.plain_lexing.cpp_tokens import tokens
from tests.tools.other_environments import absent, peer_python

NUM_BYTES = 2_000_000
NUM_TURNS = 3
REACH, REACH_RATIO = 60.0, 20.0
UNIT = "MB/s of text, one core's time"


def signatures() -> list[Figure]:
    """MB/s of one core: the signature alone, from stored shingles; and all of it, from text. Bits are compared with datasketch."""
    chosen = sample("quick", NUM_BYTES)
    megabytes = sum(len(text.encode()) for text in chosen) / 1e6
    shingles = [shingle_hashes("a.cpp", text) for text in chosen]
    hashes = [hashes_for_minhash(each) for each in shingles]
    ways: dict[str, Callable[[], list[Any]]] = {
        "ours": lambda: [signature(each, 1) for each in hashes],
        "from text": lambda: [signature(hashes_for_minhash(shingle_hashes("a.cpp", text)), 1) for text in chosen],
        "datasketch": lambda: [_datasketch(each) for each in shingles],
        "datasketch from text": lambda: [_datasketch_of_text(text) for text in chosen],
    }
    made: dict[str, list[Any]] = {}
    speeds: dict[str, float] = dict.fromkeys(ways, 0.0)
    for _ in range(NUM_TURNS):
        for name, run in ways.items():
            lexed.cache_clear()
            started = time.process_time()
            made[name] = run()
            speeds[name] = max(speeds[name], megabytes / (time.process_time() - started))
    different = sum(
        not np.array_equal(mine, theirs) for mine, theirs in zip(made["ours"], made["datasketch"], strict=True)
    )
    alone, whole = speeds["ours"] / speeds["datasketch"], speeds["from text"] / speeds["datasketch from text"]
    return [
        _figure("signature", speeds["ours"], REACH, "datasketch 2 affine32, MB/s, same shingles", speeds["datasketch"]),
        Figure("signature/ratio", round(alone, 1), "times datasketch", ">= 20", alone >= REACH_RATIO),
        Figure("signature/different", different, "of the signatures", "0", different == 0),
        _figure(
            "signature/from-text",
            speeds["from text"],
            0,
            "datasketch, Python's shingles",
            speeds["datasketch from text"],
        ),
        Figure("signature/from-text-ratio", round(whole, 1), "times datasketch", "reported", True),
        _rensa(hashes, megabytes),
    ]


def _figure(name: str, speed: float, reach: float, peer: str, peer_speed: float) -> Figure:
    wanted = f">= {reach:.0f} MB/s" if reach else "reported"
    ratio = round(speed / peer_speed, 1)
    return Figure(name, round(speed, 1), UNIT, wanted, speed >= reach, peer, round(peer_speed, 2), ratio)


def _datasketch(shingles: NDArray[np.uint64]) -> Any:
    """As a user would: every shingle's bytes through the hash function. The hash here is the one that is stored."""
    sketch = MinHash(
        NUM_PERMUTATIONS, seed=1, hashfunc=lambda value: int.from_bytes(value[4:], "little"), scheme="affine32"
    )
    sketch.update_batch([value.tobytes() for value in shingles])
    return sketch.hashvalues.astype(np.uint32)


def _datasketch_of_text(text: str) -> Any:
    found = tokens(text)
    sketch = MinHash(NUM_PERMUTATIONS, seed=1, scheme="affine32")
    sketch.update_batch([" ".join(found[at : at + 5]).encode("utf-8", "replace") for at in range(len(found) - 4)])
    return sketch.hashvalues


def _rensa(hashes: list[NDArray[np.uint32]], megabytes: float) -> Figure:
    name, unit, interpreter = "signature/rensa", f"{UNIT}, other signatures", peer_python("rensa")
    if interpreter is None:
        return Figure(name, None, unit, "reported", None, absent("rensa"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.json"
        path.write_text(json.dumps([[str(value) for value in each.tolist()] for each in hashes]))
        line = [
            str(interpreter),
            str(Path(__file__).with_name("rensa_signatures.py")),
            str(path),
            str(NUM_PERMUTATIONS),
        ]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
    return Figure(name, round(megabytes / float(done.stdout), 1), unit, "reported", True)
