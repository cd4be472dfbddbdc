"""Signatures of rensa: `rensa_signatures.py WORDS.json NUM_PERMUTATIONS` prints seconds of processor time.

Run by an interpreter that has rensa and nothing of ours.
"""

import json
import sys
import time
from pathlib import Path


def main() -> int:
    """Sketch each list of words in turn."""
    from rensa import RMinHash

    words, num_permutations = json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2])
    started = time.process_time()
    for each in words:
        RMinHash(num_perm=num_permutations, seed=1).update(each)
    print(time.process_time() - started)
    return 0


if __name__ == "__main__":
    sys.exit(main())
