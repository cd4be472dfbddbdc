"""fsck reports a damaged store and its exit code says so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., tuple[int, Any, str]]


def test_fsck_finds_nothing_in_a_sound_store_and_the_flip_in_a_damaged_one(run: Run, tmp_path: Path) -> None:
    run("build", "--recipe", "tiny", "--workers", "1", "--until", "collect")
    assert run("fsck")[:2] == (0, {"problems": []})

    path = next((tmp_path / "store" / "objects" / "collect" / "part").glob("*/files.parquet"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)
    code, answer, _ = run("fsck")
    assert code == 1
    assert path.parent.name[:12] in answer["problems"][0]
