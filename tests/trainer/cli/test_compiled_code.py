"""The commands about compiled code, without any."""

import json
from pathlib import Path

import pytest

from trainer.__main__ import main


def test_an_empty_cache_has_no_hash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["cache", "status", "--json", "--store", str(tmp_path)])
    output = capsys.readouterr()
    answer = json.loads(output.out)

    assert code == 0
    assert (answer["place"], answer["num_files"], answer["sha256"]) == (str(tmp_path / "compiled"), 0, None)
    assert "hash        missing: the cache is empty" in output.out + output.err
