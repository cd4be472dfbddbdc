"""Candidates of text-dedup: `text_dedup_candidates.py TEXTS.json` prints the pairs of texts that share a band.

Run by an interpreter that has text-dedup and nothing of ours. Texts are words divided by blanks, so that its shingles are ours:
five words. Its settings are those of its documentation: 256 permutations, a threshold of 0.7, bands that fit it best.
"""

import json
import sys
from collections import defaultdict
from itertools import combinations
from pathlib import Path


def main() -> int:
    """Print the pairs as JSON, each with the smaller number first."""
    from text_dedup.config import MinHashAlgorithmConfig

    settings = MinHashAlgorithmConfig(
        algorithm_name="minhash", num_perm=256, ngram_size=5, threshold=0.7, text_column="text"
    )
    embed = settings.get_embed_func()
    buckets: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, text in enumerate(json.loads(Path(sys.argv[1]).read_text())):
        made = embed([text], [number])
        for index, value in zip(made["__band_idx__"], made["__band_val__"], strict=True):
            buckets[str(index), str(value)].append(number)
    print(json.dumps(sorted({pair for members in buckets.values() for pair in combinations(members, 2)})))
    return 0


if __name__ == "__main__":
    sys.exit(main())
