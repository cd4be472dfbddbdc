"""Made amalgamations: files of functions that no other file has, and what is compared of them."""

import hashlib
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

from pipeline.stages.normalize.duplicates.contained_pairs import Samples, sampled_shingles
from pipeline.stages.normalize.duplicates.duplicates import ComparedDocument
from pipeline.stages.normalize.duplicates.shingles import body_shingle_hashes


def function(name: str, random: Random, num_lines: int = 6) -> str:
    """Return a function of lines that no other has."""
    words = [f"{name}_{random.randrange(10**6)}" for _ in range(num_lines)]
    body = "".join(f"  // step {word}\n  total_{word} += {word}[{random.randrange(99)}] * scale;\n" for word in words)
    return f"int {name}(const int* input) {{\n{body}  return total_{words[0]};\n}}\n"


def file_of(name: str, random: Random, num_functions: int) -> list[str]:
    """Return the functions of a file."""
    return [function(f"{name}_{number}", random) for number in range(num_functions)]


INCLUDES = "#include <algorithm>\n#include <memory>\n#include <vector>\n#include <string>\n"


def compared(
    files: Mapping[str, str], held_out: Sequence[str] = ()
) -> tuple[list[ComparedDocument], Samples, dict[str, NDArray[np.uint64]]]:
    """Return the entries, samples and shingles of texts by their paths, which begin with their sources."""
    shingles = {path: body_shingle_hashes("a.cpp", text) for path, text in files.items()}
    entries = []
    for row, (path, text) in enumerate(files.items()):
        source, _, name = path.partition("/")
        split = "held_out" if source in held_out else "train"
        digest = hashlib.sha256(text.encode()).hexdigest()
        entries.append(ComparedDocument(path, source, name, split, len(text), digest, True, len(shingles[path]), row))
    sampled = [sampled_shingles(each) for each in shingles.values()]
    starts = np.cumsum([0, *map(len, sampled)]).astype(np.int64)
    sizes = np.array([*map(len, shingles.values())], np.int64)
    return entries, Samples(np.concatenate(sampled), starts, sizes), shingles
