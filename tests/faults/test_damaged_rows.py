"""Rows whose bytes are not the ones written are named and never trained on; every seed is in the files of a run."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store
from trainer.__main__ import main


def files_of(store: Store) -> list[Path]:
    """The training rows of the first two sources that have some, in the store."""
    snapshot: Snapshot = open_snapshot(store, store.ref("tiny", "live") or "")
    sources = [source for source in snapshot.sources if source.num_rows_train]
    folders = [store.read(source.rows).path for source in sources[:2]]
    return [next(path for path in sorted(folder.iterdir()) if path.name.startswith("rows_train")) for folder in folders]


def _flip(path: Path, _: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _swap(path: Path, other: Path) -> None:
    first, second = path.read_bytes(), other.read_bytes()
    path.write_bytes(second)
    other.write_bytes(first)


DAMAGES: dict[str, Callable[[Path, Path], object]] = {
    "truncated": lambda path, _: path.write_bytes(path.read_bytes()[:-64]),
    "flipped": _flip,
    "swapped": _swap,
    "empty": lambda path, _: path.write_bytes(b""),
    "gone": lambda path, _: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_shard_is_named_and_no_step_is_taken(
    damage: str, tiny_store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "store")
    store = Store(tmp_path / "store")
    first, second = files_of(store)
    DAMAGES[damage](first, second)
    line = ["--store", str(store.root), "--corpus", "tiny", "--json"]
    for command in (["train", *line, "--out", str(tmp_path / "out"), "--stop-after", "1"], ["observe", *line]):
        assert main(command) == 1
        assert first.name in json.loads(capsys.readouterr().out)["message"]
    assert not (tmp_path / "out" / "metrics.jsonl").exists()


def test_every_seed_is_in_the_result_and_the_checkpoint(tiny_store: Store, tmp_path: Path) -> None:
    shutil.copytree(tiny_store.root, tmp_path / "store")
    line = ["train", "--store", str(tmp_path / "store"), "--corpus", "tiny", "--out", str(tmp_path / "out")]
    assert main([*line, "--stop-after", "1", "--seed", "77"]) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["seeds"] == {"global": 77, "weights": 77, "loader": 77}
    state = json.loads((Store(tmp_path / "store").read(result["checkpoint_id"]).path / "state.json").read_text())
    assert (state["identity"]["seed"], state["loader"]["seed"]) == (77, 77)
