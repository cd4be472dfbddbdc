"""Comparison in groups: the same rows, byte for byte, as a comparison of everything at once, whatever is copied from where."""

from pathlib import Path
from random import Random

import pytest

from pipeline.contracts.part import DUPLICATES_PART, PartJob, PartOutput
from pipeline.core.records import Split
from pipeline.core.table_names import DUPLICATES, KEPT
from pipeline.formats.tables import write_table
from pipeline.stages.normalize.duplicates import spill
from pipeline.stages.normalize.duplicates.compare_sources import compare_sources
from pipeline.stages.normalize.duplicates.partitions import corpus_rows, ordered_output, sample_stretches
from pipeline.stages.normalize.params import VENDORED_ROOTS, DuplicateParams
from tests.pipeline.stages.normalize.duplicates.partitions.made_cleaned import (
    MadeFile,
    MadeTables,
    cleaned,
    compare_in_groups,
)
from tests.pipeline.stages.normalize.duplicates.test_duplicates import statements
from tests.support.made.made_amalgamations import file_of

UPSTREAMS = {"a": {"zlib/**": "e"}, "b": {"zlib/**": "f"}}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups, stretches and intervals of a few rows, so that a small corpus has many."""
    monkeypatch.setattr(corpus_rows, "_GROUP_BYTES", 40_000)
    monkeypatch.setattr(sample_stretches, "_SAMPLES_IN_STRETCH", 500)
    monkeypatch.setattr(ordered_output, "_ROWS_IN_STRETCH", 8)
    monkeypatch.setattr(ordered_output, "MAX_ROWS_IN_SHARD", 5)
    monkeypatch.setattr(spill, "_MAX_BYTES_HELD", 20_000)


def drawn_sources(random: Random, share_held_out: float) -> dict[str, MadeTables]:
    """Sources whose files are copies, near copies, parts and containers of each other, some under copyleft."""
    parts = [file_of(f"part{number}", random, random.randrange(3, 9)) for number in range(8)]
    folders = ["", "", "third_party/", "zlib/"]
    files: dict[str, dict[str, MadeFile]] = {name: {} for name in "abcdef"}
    for number in range(90):
        kind = random.randrange(5)
        if kind == 0:
            text = statements(f"x{random.randrange(6)}", 60, random.choice([0, 2, 5, 8, 12, 16]))
        elif kind == 1:
            text = "".join(random.choice(parts))
        elif kind == 2:
            text = "".join(line for part in random.sample(parts, 3) for line in part)
        elif kind == 3:
            chosen = random.choice(parts)
            text = "".join(chosen[: len(chosen) - random.randrange(2)] + file_of(f"own{number}", random, 1))
        else:
            text = f"int short_{random.randrange(3)};\n"
        path = f"{random.choice(folders)}f{number % 25}.cpp"
        split = Split.HELD_OUT if random.random() < share_held_out else Split.TRAIN
        flags = random.random() < 0.1, random.random() < 0.5
        files[random.choice("abcdef")][path] = MadeFile(path, text, split, *flags)
    return {name: cleaned(name, list(some.values()), 1 + ord(name) % 3) for name, some in files.items()}


def written(output: PartOutput, folder: Path) -> dict[str, bytes]:
    """The files of the tables of an output."""
    folder.mkdir()
    for name, table in output.tables.items():
        write_table(folder, name, table)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("seed", range(4))
def test_groups_lose_and_keep_what_a_comparison_at_once_does(seed: int, tmp_path: Path, small: None) -> None:
    sources = drawn_sources(Random(seed), share_held_out=seed % 2 * 0.3)
    identity = {"vendored_roots": VENDORED_ROOTS, "upstreams": UPSTREAMS if seed < 2 else {}}
    job = PartJob(DUPLICATES_PART, DuplicateParams(), sources, identity, {})  # type: ignore[arg-type]  # what is read of them
    wanted, found = compare_sources(job), compare_in_groups(job, tmp_path)

    reasons = {"exact_duplicate", "near_duplicate", "copyleft_copy", "contained", "container"}
    assert reasons <= set(wanted.tables[DUPLICATES]["reason"].to_pylist())
    for name in (DUPLICATES, KEPT):
        assert found.tables[name].to_pylist() == wanted.tables[name].to_pylist()
    assert written(found, tmp_path / "found") == written(wanted, tmp_path / "wanted")
