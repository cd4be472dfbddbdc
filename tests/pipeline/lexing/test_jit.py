"""Machine code is cached; an entry that cannot be read, or is of a module that was moved, is made again."""

from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from pipeline.lexing.jit import compiled

OF_A_MOVED_MODULE = b"cno_such_package.moved_loops\nadd\n."
"""A pickle that names a module that is not there."""
_LOOPS = "def add(left, right):\n    return left + right\n"


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], tuple[int, int]]:
    """Return the sum of a function that is compiled in a fresh module, and how often it was found in the cache."""
    path = tmp_path_factory.mktemp("loops") / "loops.py"
    path.write_text(_LOOPS)

    def create() -> tuple[int, int]:
        spec = spec_from_file_location("loops", path)
        assert spec is not None
        assert spec.loader is not None
        module: Any = module_from_spec(spec)
        spec.loader.exec_module(module)
        add = compiled(module.add)
        return add(2, 3), sum(add.stats.cache_hits.values())

    create.folder = path.parent / "__pycache__"  # type: ignore[attr-defined]
    return create


@pytest.mark.parametrize("suffix", ["nbc", "nbi"])
@pytest.mark.parametrize(
    "content", [OF_A_MOVED_MODULE, b"", b"\x80\x05garbage", None], ids=["moved", "empty", "bad", "cut"]
)
def test_an_entry_that_cannot_be_read_is_made_again(call: Any, suffix: str, content: bytes | None) -> None:
    call()
    (entry,) = Path(call.folder).glob(f"*.{suffix}")
    entry.write_bytes(entry.read_bytes()[:-7] if content is None else content)

    assert call() == (5, 0)
    assert call() == (5, 1)
