"""Frozen parameters keep every bit, have no state in the optimizer and do not decay, with Muon and with AdamW."""

from typing import Any

import pytest
import torch

from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from tests.support.made.made_snapshot import commit_made
from trainer.checkpoint.tensor_files import digest_tensors
from trainer.config.presets import preset
from trainer.config.training_config import TrainingConfig, training_recipe
from trainer.model.freezing import freeze
from trainer.model.hybrid import HybridModel
from trainer.train.session import RunInputs
from trainer.train.training_state import Training

TINY = training_recipe("tiny")


def training_of(store: Store, frozen: tuple[str, ...], **optimizer: Any) -> Training:
    changed = TINY.optimizer.model_copy(update=optimizer)
    config = TrainingConfig.model_validate({**dict(TINY), "frozen": frozen, "optimizer": changed})
    return Training(store, RunInputs(commit_made(store), config, 42))


@pytest.mark.parametrize("optimizer", [{}, {"muon": None}], ids=["Muon", "AdamW"])
def test_what_is_frozen_keeps_its_bits_and_has_no_state(store: Store, optimizer: dict[str, Any]) -> None:
    training = training_of(store, ("embedding*", "layers.1.*", "*.block.query.weight"), **optimizer)
    before = {name: value.clone() for name, value in training.model.state_dict().items()}
    for _ in range(3):
        training.step(training.loader.batch_at(training.position, 4))

    after = training.model.state_dict()
    moved = {name for name, value in before.items() if not torch.equal(after[name], value)}
    frozen = {name for name in before if name.startswith(("embedding", "layers.1.")) or "block.query.weight" in name}
    assert "layers.1.block.selection_bias_E" in frozen
    assert moved == before.keys() - frozen
    assert not {name.partition("/")[2] for name in training.optimizer_state()} & frozen
    assert any(name.startswith("momentum/") for name in training.optimizer_state()) is not bool(optimizer)


def test_a_frozen_run_resumes_to_the_same_bits(store: Store) -> None:
    whole, half = (training_of(store, ("layers.0.*",)) for _ in range(2))
    for training, steps in ((whole, 4), (half, 2)):
        for _ in range(steps):
            training.step(training.loader.batch_at(training.position, 4))
    resumed = training_of(store, ("layers.0.*",))
    resumed.restore(half.checkpoint())
    for _ in range(2):
        resumed.step(resumed.loader.batch_at(resumed.position, 4))

    assert resumed.history.certificate == whole.history.certificate
    assert digest_tensors(resumed.tensors()) == digest_tensors(whole.tensors())


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (("layers.0.*", "blocks.0.*"), "frozen pattern 'blocks.0.*': it matches no parameter"),
        (("embeding_VD",), r"Did you mean embedding_VD\?"),
        (("nothing",), r"begin with layers.0, layers.1, layers.2, layers.3, norm, embedding_VD"),
        (("*",), "they match all [0-9]+ parameters; expected at least one parameter to train"),
    ],
)
def test_a_pattern_that_leaves_nothing_to_freeze_or_to_train_is_refused(
    patterns: tuple[str, ...], message: str
) -> None:
    with pytest.raises(TrainingError, match=message):
        freeze(HybridModel(preset("tiny"), 64), patterns)


def test_what_is_frozen_is_in_the_identity_of_a_run() -> None:
    frozen = TINY.model_copy(update={"frozen": ("layers.0.*",)})

    assert frozen.model_dump(mode="json").keys() - TINY.model_dump(mode="json").keys() == {"frozen"}
