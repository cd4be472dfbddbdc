"""The gate in front of detect-secrets on two megabytes of real C and C++: the headers that installed packages bring."""

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tree_sitter

from tests.pipeline.stages.normalize.scrub.test_secrets import gated_findings, whole_file_findings
from tests.support.planted_secrets import lines_by_plugin

_NUM_BYTES = 2_000_000


def real_files() -> list[Path]:
    """Headers of pyarrow, numpy and torch in a fixed random order."""
    site = Path(tree_sitter.__file__).parents[1]
    folders = [Path(pa.get_include()), Path(np.get_include()), site / "torch" / "include"]
    found = sorted(path for folder in folders for path in folder.rglob("*.h"))
    random.Random(4).shuffle(found)
    return found


def read_some(num_bytes: int) -> list[str]:
    texts: list[str] = []
    for path in real_files():
        if sum(map(len, texts)) >= num_bytes:
            break
        texts.append(path.read_text("utf-8", errors="ignore"))
    return texts


@pytest.mark.slow
def test_real_files_are_found_exactly_as_the_tool_finds_them(tmp_path: Path) -> None:
    """With a planted line in every fifth file, since headers that are shipped hold few secrets."""
    planted = [line for lines in lines_by_plugin().values() for line in lines]
    texts = read_some(_NUM_BYTES)
    assert sum(map(len, texts)) >= _NUM_BYTES
    num_findings = 0
    for index, text in enumerate(texts):
        lines = text.split("\n")
        if index % 5 == 0:
            lines.insert(len(lines) // 2, planted[index // 5 % len(planted)])
        content = "\n".join(lines)
        found = gated_findings(content)
        assert found == whole_file_findings(tmp_path / "x.cpp", content)
        num_findings += len(found)
    assert num_findings >= len(texts) // 10
