"""The structure embedding: two tables and a projection by hand, without effect at first, and never built where it is off."""

import pytest
import torch

from pipeline.core.errors import TrainingError
from trainer.checkpoint.tensor_files import digest_tensors
from trainer.config.model import ModelConfig, OptimizerConfig, StructureConfig
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.model.loss import TrainingBatch
from trainer.model.structure_embedding import StructureEmbedding

STRUCTURE = StructureConfig(num_kinds=9, num_levels=4, bottleneck_size=5)


def batch_of(has_structure: bool) -> TrainingBatch:
    generator = torch.Generator().manual_seed(0)
    ids_BT, kind_BT, level_BT = (torch.randint(0, high, (2, 12), generator=generator) for high in (60, 9, 300))
    doc_ids_BT = torch.tensor([[1] * 5 + [2] * 7, [1] * 10 + [-1] * 2])
    columns = (kind_BT.to(torch.uint8), level_BT.to(torch.int32)) if has_structure else (None, None)
    return TrainingBatch(ids_BT, ids_BT.roll(-1, 1), doc_ids_BT > 0, doc_ids_BT, *columns)


def initialized(config: ModelConfig) -> HybridModel:
    model = HybridModel(config, 60)
    initialize(model, seed=42)
    return model


def test_the_embedding_is_the_projected_sum_of_two_rows_the_last_for_codes_beyond(shaken) -> None:
    embedding = shaken(StructureEmbedding(STRUCTURE, 16))
    kinds, levels = torch.tensor([[3, 8, 200]]), torch.tensor([[0, 3, 65_535]])

    expected = [
        embedding.out_DN @ (embedding.kinds_KN[kind] + embedding.levels_LN[level])
        for kind, level in ((3, 0), (8, 3), (8, 3))
    ]

    torch.testing.assert_close(embedding(kinds, levels)[0], torch.stack(expected))


def test_a_model_begins_as_if_it_had_none_and_then_learns_it(config_of) -> None:
    off, on = (
        initialized(config)
        for config in (config_of("AEMR"), config_of("AEMR").model_copy(update={"structure": STRUCTURE}))
    )

    with_it, without = on.loss(batch_of(True))[0], off.loss(batch_of(False))[0]
    with_it.backward()

    assert torch.equal(with_it, without)
    own = {name for name in on.state_dict() if name not in off.state_dict()}
    assert own == {"structure.kinds_KN", "structure.levels_LN", "structure.out_DN"}
    assert digest_tensors(
        {name: value for name, value in on.state_dict().items() if name not in own}
    ) == digest_tensors(off.state_dict())
    assert on.structure.out_DN.grad.abs().max() > 0


def test_what_is_off_leaves_no_field_in_an_identity_and_what_is_on_comes_back(config_of) -> None:
    on = config_of("A").model_copy(update={"structure": STRUCTURE})

    assert "structure" not in config_of("A").model_dump(mode="json")
    assert "muon" not in OptimizerConfig().model_dump(mode="json")
    assert ModelConfig.model_validate(config_of("A").model_dump(mode="json")) == config_of("A")
    assert ModelConfig.model_validate(on.model_dump(mode="json")) == on


def test_a_batch_without_the_columns_is_refused_by_a_model_that_needs_them_and_ignored_by_one_that_does_not(
    config_of,
) -> None:
    on = initialized(config_of("A").model_copy(update={"structure": STRUCTURE}))
    off = initialized(config_of("A"))

    with pytest.raises(TrainingError, match="no structure kinds and dependency levels"):
        on.loss(batch_of(False))
    assert torch.equal(off.loss(batch_of(True))[0], off.loss(batch_of(False))[0])


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (3, 1)])
def test_odd_rows_are_trained_on(config_of, shape: tuple[int, int]) -> None:
    model, ids_BT = initialized(config_of("AEMR")), torch.ones(shape, dtype=torch.int64)
    padding = TrainingBatch(ids_BT, ids_BT, torch.zeros_like(ids_BT), -ids_BT)

    assert model.loss(TrainingBatch(ids_BT, ids_BT, ids_BT, ids_BT))[0].isfinite()
    loss, metrics = model.loss(padding)
    loss.backward()
    assert (float(loss), int(metrics.num_trained_tokens)) == (0.0, 0), "a batch of padding teaches nothing"
    assert all(float(parameter.grad.abs().max()) == 0 for parameter in model.parameters() if parameter.grad is not None)


def test_a_row_beyond_the_limit_is_refused(config_of) -> None:
    model = initialized(config_of("E").model_copy(update={"max_row_tokens": 4}))

    with pytest.raises(TrainingError, match="they have 5 tokens; expected at most 4"):
        model(torch.zeros(1, 5, dtype=torch.int64), torch.ones(1, 5, dtype=torch.int64))
