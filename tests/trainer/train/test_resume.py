"""Resuming: a damaged checkpoint is named, and the newest sound one is offered in its place."""

import pytest

from pipeline.core.errors import StoreError
from pipeline.store.store import Store
from tests.support.made.made_checkpoints import write_run
from trainer.train.resume import load_or_suggest


def test_every_damaged_file_is_found_and_named_and_the_checkpoint_before_is_offered(store: Store) -> None:
    before, last = write_run(store, "r", range(1, 3))
    for path in sorted(store.read(last).path.iterdir()):
        content = path.read_bytes()
        flipped = bytearray(content)
        flipped[len(content) // 2] ^= 1
        for damaged in (bytes(flipped), content[:-1], b"", None):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            with pytest.raises(StoreError) as caught:
                load_or_suggest(store, "r", last)
            assert path.name in str(caught.value) or last[:12] in str(caught.value)
            assert str(caught.value).endswith(f"The one of step 1 is sound: --resume {before}")
        path.write_bytes(content)
    assert load_or_suggest(store, "r", last).step == 2
