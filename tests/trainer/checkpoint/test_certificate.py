"""Two runs agree if one string agrees; where they do not, the history says where they parted."""

import hashlib
import struct
from dataclasses import replace

import pytest
import torch

from pipeline.core.errors import TrainingError
from tests.support.made.made_histories import history_of
from tests.support.made.made_rows import LAYOUT, PLAIN, sources_of
from trainer.checkpoint.certificate import History, digest_batch
from trainer.data.loader import Loader


def test_the_chains_are_what_the_module_says() -> None:
    history = History()
    history.extend(b"b" * 32, 1.5, False, {"b": torch.tensor([2.0]), "a": torch.tensor([1], dtype=torch.int8)})
    words = {"a\0int8\0[1]\0": b"\x01", "b\0float32\0[1]\0": struct.pack("<f", 2.0)}
    own = [hashlib.sha256(name.encode() + digest_of_one_word(each)) for name, each in words.items()]
    state = hashlib.sha256(b"".join(each.digest() for each in own)).digest()
    state += b"".join(each.digest()[:4] for each in own)
    data = hashlib.sha256(hashlib.sha256(b"sluice/certificate/data/2").digest() + b"b" * 32)
    start = hashlib.sha256(b"sluice/certificate/numbers/3").digest()
    numbers = hashlib.sha256(start + struct.pack("<f", 1.5) + b"\0" + state)

    assert history.certificate == f"{data.hexdigest()}:{numbers.hexdigest()}"


def digest_of_one_word(given: bytes) -> bytes:
    """The digest of a tensor of up to eight bytes, by the formula of `kernels.tensor_digest`, as eight bytes."""

    def mix(word: int) -> int:
        word = word * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ word >> 32) * 0x94D049BB133111EB % 2**64
        return word ^ word >> 29

    return mix(mix(int.from_bytes(given, "little") ^ 0x9E3779B97F4A7C15)).to_bytes(8, "little")


@pytest.mark.parametrize("other", [(1.0, 2.0, 3.0, 4.0 + 2**-21), (1.0, 2.0, 3.0), (1.0, 2.0, 4.0, 3.0)])
def test_another_loss_another_order_or_another_length_is_another_certificate(other: tuple[float, ...]) -> None:
    assert history_of(1.0, 2.0, 3.0, 4.0).certificate != history_of(*other).certificate


def test_the_data_chain_stays_the_same_where_only_numbers_differ() -> None:
    one, other = history_of(1.0, 2.0), history_of(1.0, 2.5)

    assert one.data == other.data
    assert one.numbers != other.numbers


def test_a_history_survives_its_tensors_and_a_changed_one_is_refused() -> None:
    history = history_with_states()
    tensors = history.as_tensors()
    again = History.of_tensors(tensors, history.certificate)

    assert again.certificate == history.certificate
    for name in tensors:
        with pytest.raises(TrainingError):
            History.of_tensors({key: value for key, value in tensors.items() if key != name}, history.certificate)
    for name in tensors:
        changed = tensors[name].clone()
        changed.view(-1)[0] = ~changed.view(-1)[0] if changed.dtype == torch.bool else changed.view(-1)[0] + 1
        with pytest.raises(TrainingError, match="do not end in its certificate"):
            History.of_tensors({**tensors, name: changed}, history.certificate)


def test_a_state_of_every_step_survives_its_tensors() -> None:
    history = History()
    for number in range(3):
        history.extend(bytes([number]) * 32, 1.0, False, {"a": torch.tensor([number])})

    assert [state.step for state in history.states] == [1, 2, 3]
    assert History.of_tensors(history.as_tensors(), history.certificate) == history
    assert History.of_tensors(History().as_tensors(), History().certificate) == History()


@pytest.mark.parametrize("step", [0, 2, 4])
def test_a_state_that_no_link_holds_is_refused(step: int) -> None:
    history = history_with_states()
    assert [state.step for state in history.states] == [2]
    history.states.append(replace(history.states[0], step=step))

    with pytest.raises(TrainingError, match="do not end in its certificate"):
        History.of_tensors(history.as_tensors(), history.certificate)


def history_with_states() -> History:
    history = History()
    for number, loss in enumerate((1.0, float("nan"), 3.0), start=1):
        tensors = {"a": torch.tensor([loss, 1.0]), "b": torch.tensor([2])} if number == 2 else None
        history.extend(bytes([number]) * 32, loss, False, tensors)
    return history


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
