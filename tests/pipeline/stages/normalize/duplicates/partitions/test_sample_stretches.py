"""Sample stretches: the pairs of documents that samples in memory give, however many stretches their values are cut into."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from pipeline.stages.normalize.duplicates.contained_pairs import SampleStretch, candidate_pairs
from pipeline.stages.normalize.duplicates.duplicates import SIGNATURES
from pipeline.stages.normalize.duplicates.partitions import sample_stretches
from pipeline.stages.normalize.duplicates.partitions.corpus_rows import CorpusRows
from pipeline.stages.normalize.duplicates.partitions.sample_stretches import SpilledSamples
from pipeline.stages.normalize.params import DuplicateParams
from tests.pipeline.stages.normalize.duplicates.partitions.made_cleaned import MadeFile, cleaned
from tests.support.made.made_amalgamations import file_of

PARAMS = DuplicateParams(max_num_sharing=9)


def drawn_rows() -> CorpusRows:
    random = Random(2)
    parts = [file_of(f"part{number}", random, 6) for number in range(6)]
    files = []
    for number in range(24):
        chosen = [line for part in random.sample(parts, random.randrange(1, 4)) for line in part]
        files.append(MadeFile(f"{number:02d}.cpp", "".join(chosen + file_of(f"own{number}", random, 1))))
    return CorpusRows({"a": cleaned("a", files, 3)}, (), {})  # type: ignore[dict-item]  # what is read of it


@pytest.mark.parametrize("num_samples", [10**9, 2_000, 100])
def test_stretches_give_the_pairs_of_all_samples_at_once(
    num_samples: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = drawn_rows()
    chosen = np.arange(0, rows.num_rows - 2)
    ordered = rows.by_size(chosen)
    lists = [row for shard in rows.shards for row in shard.stored.table(SIGNATURES)["sample"].to_pylist()]
    values = [np.array(lists[row], np.uint32) for row in ordered.tolist()]
    owners = np.repeat(np.arange(len(ordered)), [len(each) for each in values])
    whole = SampleStretch(np.concatenate(values), owners, PARAMS.max_num_sharing)
    sizes = rows.body_sizes[ordered]
    pairs = candidate_pairs(lambda: [whole], sizes, PARAMS)
    wanted = {(ordered[part], ordered[container]) for part, container in pairs}
    assert 10 < len(wanted) < len(chosen) ** 2 / 4

    monkeypatch.setattr(sample_stretches, "_SAMPLES_IN_STRETCH", num_samples)
    found = SpilledSamples(rows, tmp_path).pairs(chosen, PARAMS, tmp_path / "meetings")
    assert {(part, whole) for part, whole in found.tolist()} == wanted
