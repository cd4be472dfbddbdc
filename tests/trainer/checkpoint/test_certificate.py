"""Two runs agree if one string agrees; where they do not, the history says where they parted."""

import hashlib
import struct
from dataclasses import replace

import pytest

from pipeline.core.errors import TrainingError
from tests.support.made_histories import history_of
from tests.support.made_rows import LAYOUT, PLAIN, sources_of
from trainer.checkpoint.certificate import History, digest_batch
from trainer.data.loader import Loader


def test_the_chains_are_what_the_module_says() -> None:
    history = History()
    history.extend(b"b" * 32, 1.5, False, None)
    data = hashlib.sha256(hashlib.sha256(b"sluice/certificate/data/1").digest() + b"b" * 32)
    numbers = hashlib.sha256(hashlib.sha256(b"sluice/certificate/numbers/1").digest() + struct.pack("<f", 1.5) + b"\0")

    assert history.certificate == f"{data.hexdigest()}:{numbers.hexdigest()}"


@pytest.mark.parametrize("other", [(1.0, 2.0, 3.0, 4.0 + 2**-21), (1.0, 2.0, 3.0), (1.0, 2.0, 4.0, 3.0)])
def test_another_loss_another_order_or_another_length_is_another_certificate(other: tuple[float, ...]) -> None:
    assert history_of(1.0, 2.0, 3.0, 4.0).certificate != history_of(*other).certificate


def test_the_data_chain_stays_the_same_where_only_numbers_differ() -> None:
    one, other = history_of(1.0, 2.0), history_of(1.0, 2.5)

    assert one.data == other.data
    assert one.numbers != other.numbers


def test_a_history_survives_its_tensors_and_a_changed_one_is_refused() -> None:
    history = history_of(1.0, float("nan"), 3.0)
    tensors = history.as_tensors()
    again = History.of_tensors(tensors, history.certificate)

    assert again.certificate == history.certificate
    for name in tensors:
        with pytest.raises(TrainingError):
            History.of_tensors({key: value for key, value in tensors.items() if key != name}, history.certificate)
    changed = {**tensors, "losses": tensors["losses"] + 1}
    with pytest.raises(TrainingError, match="do not end in its certificate"):
        History.of_tensors(changed, history.certificate)


def test_a_batch_is_known_by_its_content_and_its_position() -> None:
    loader = Loader(sources_of(a=5, b=3), LAYOUT, PLAIN)
    batch = loader.batch_at(0, 2)
    masked = batch.loss_mask_BT.copy()
    masked[0, 0] ^= True

    assert digest_batch(batch) == digest_batch(Loader(sources_of(a=5, b=3), LAYOUT, PLAIN).batch_at(0, 2))
    changed = [replace(batch, position=1), replace(batch, loss_mask_BT=masked), loader.batch_at(2, 2)]
    assert len({digest_batch(batch), *map(digest_batch, changed)}) == 4


def test_each_step_has_its_own_certificate() -> None:
    losses = (1.0, 2.0, 3.0)
    assert history_of(*losses).certificates() == {
        step: history_of(*losses[:step]).certificate for step in range(1, len(losses) + 1)
    }
