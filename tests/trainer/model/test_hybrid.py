"""Laws of every block and of the whole stack: causal, isolated by document, packed as if alone, reproducible."""

import pytest
import torch
from torch.nn import functional

from trainer.config.model import OptimizerConfig
from trainer.config.presets import preset
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize
from trainer.model.loss import TrainingBatch
from trainer.model.parameter_count import count_parameters
from trainer.model.segments import describe_rows
from trainer.optim.clipping import clip_gradients
from trainer.optim.optimizer import build_optimizer
from trainer.optim.schedule import learning_rate, set_learning_rate

VOCABULARY = 60
NUM_TOKENS = 27
LENGTHS = [[9, 1, 14], [27]]
PATTERNS = ["A", "E", "M", "R", "AEMR"]


@pytest.fixture
def model_of(config_of, shaken):
    """A small shaken model for a pattern."""
    return lambda pattern: shaken(HybridModel(config_of(pattern), VOCABULARY))


def token_ids(num_rows: int = 2, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, VOCABULARY, (num_rows, NUM_TOKENS), generator=torch.Generator().manual_seed(seed))


def batch_of(ids_BT: torch.Tensor, doc_ids_BT: torch.Tensor) -> TrainingBatch:
    is_last = functional.pad(doc_ids_BT[:, 1:] != doc_ids_BT[:, :-1], (0, 1), value=True)
    return TrainingBatch(ids_BT, ids_BT.roll(-1, dims=1), (doc_ids_BT > 0) & ~is_last, doc_ids_BT)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_later_token_changes_nothing_before_it(model_of, doc_ids_from, pattern: str) -> None:
    model, doc_ids_BT, ids_BT = model_of(pattern), doc_ids_from(LENGTHS, NUM_TOKENS), token_ids()
    before = model(ids_BT, doc_ids_BT)

    for t in range(NUM_TOKENS - 1):
        changed_BT = ids_BT.clone()
        changed_BT[:, t + 1] = (ids_BT[:, t + 1] + 1) % VOCABULARY
        after = model(changed_BT, doc_ids_BT)

        assert torch.equal(before[:, : t + 1], after[:, : t + 1]), t
        assert not torch.equal(before[:, t + 1], after[:, t + 1]), t


@pytest.mark.parametrize("pattern", PATTERNS)
def test_another_document_changes_nothing_not_even_a_rounding(model_of, doc_ids_from, pattern: str) -> None:
    model, doc_ids_BT, ids_BT = model_of(pattern), doc_ids_from(LENGTHS, NUM_TOKENS), token_ids()
    before = model(ids_BT, doc_ids_BT)

    for document in (1, 2, 3, -1):
        is_changed_BT = (doc_ids_BT == document) & (torch.arange(2) == 0)[:, None]
        after = model(torch.where(is_changed_BT, token_ids(seed=1), ids_BT), doc_ids_BT)

        assert torch.equal(before[~is_changed_BT], after[~is_changed_BT]), document


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_gradient_reaches_another_document(model_of, doc_ids_from, pattern: str) -> None:
    model, doc_ids_BT = model_of(pattern), doc_ids_from(LENGTHS[:1], NUM_TOKENS)
    ids_BT = torch.arange(NUM_TOKENS).unsqueeze(0)
    slope_D = torch.linspace(-1, 2, 16)

    (model(ids_BT, doc_ids_BT) * slope_D)[doc_ids_BT == 3].sum().backward()

    reached_T = model.embedding_VD.grad[:NUM_TOKENS].abs().sum(-1) > 0
    assert reached_T.tolist() == (doc_ids_BT[0] == 3).tolist()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_packed_document_is_as_it_is_alone(model_of, doc_ids_from, pattern: str) -> None:
    model, doc_ids_BT, ids_BT = model_of(pattern).double(), doc_ids_from(LENGTHS[:1], NUM_TOKENS), token_ids(1)
    packed = model(ids_BT, doc_ids_BT)

    first = 0
    for length in LENGTHS[0]:
        alone = model(ids_BT[:, first : first + length], torch.ones(1, length, dtype=torch.int64))

        # Tight enough to see rotary angles, which are float32, that were not counted from the document's start.
        torch.testing.assert_close(packed[:, first : first + length], alone, rtol=1e-11, atol=1e-11)
        first += length


@pytest.mark.parametrize("letter", "AEMR")
def test_a_block_returns_the_dtype_of_its_input_and_is_close_to_float32(model_of, doc_ids_from, letter: str) -> None:
    block, rows = model_of(letter).layers[0].block, describe_rows(token_ids(), doc_ids_from(LENGTHS, NUM_TOKENS))
    hidden_BTD = torch.randn(2, NUM_TOKENS, 16, generator=torch.Generator().manual_seed(3)).bfloat16()

    half, full = block(hidden_BTD, rows).update_BTD, block(hidden_BTD.float(), rows).update_BTD

    assert half.dtype == torch.bfloat16
    assert (half.float() - full).square().mean() < 1e-3 * full.square().mean()


def test_counters_are_read_for_each_expert_layer_and_start_again_after_balancing(model_of, doc_ids_from) -> None:
    model, batch = model_of("EME"), batch_of(token_ids(), doc_ids_from(LENGTHS, NUM_TOKENS))

    model.loss(batch)
    experts = [model.layers[index].block for index in (0, 2)]
    counters = [block.counters() for block in experts]
    model.balance_experts(1e-3)

    assert all(layer.load_E.sum() == 2 * (24 + 27) for layer in counters), "two choices for each real token"
    assert all(block.counters().load_E.sum() == 0 for block in experts)


def trained(num_steps: int) -> tuple[list[float], dict[str, torch.Tensor]]:
    model, config = HybridModel(preset("tiny"), 256), OptimizerConfig(num_warmup_steps=1)
    initialize(model, seed=42)
    optimizer = build_optimizer(model, config)
    generator = torch.Generator().manual_seed(0)
    ids_BT = torch.randint(0, 256, (2, 96), generator=generator)
    doc_ids_BT = torch.tensor([[1] * 40 + [2] * 50 + [-1] * 6, [1] * 96])
    losses = []
    for step in range(num_steps):
        optimizer.zero_grad()
        loss, _ = model.loss(batch_of(ids_BT, doc_ids_BT))
        loss.backward()
        clip_gradients(model.named_parameters(), config.max_gradient_norm)
        set_learning_rate(optimizer, learning_rate(step, config))
        optimizer.step()
        model.balance_experts(1e-3)
        losses.append(loss.item())
    return losses, model.state_dict()


def test_two_trainings_are_bit_identical_under_strict_determinism_and_learn(strict_determinism) -> None:
    first_losses, first_state = trained(num_steps=4)
    torch.manual_seed(123)
    second_losses, second_state = trained(num_steps=4)

    assert first_losses == second_losses
    assert all(torch.equal(first_state[name], second_state[name]) for name in first_state)
    assert first_losses[-1] < first_losses[0] - 0.3


def test_every_parameter_of_the_tiny_preset_gets_a_gradient_once_it_has_moved(shaken) -> None:
    model = shaken(HybridModel(preset("tiny"), 256))
    ids_BT = torch.randint(0, 256, (2, 70), generator=torch.Generator().manual_seed(0))

    model.loss(batch_of(ids_BT, torch.ones(2, 70, dtype=torch.int64)))[0].backward()

    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


def test_an_untied_head_is_a_parameter_of_its_own(config_of) -> None:
    tied = HybridModel(config_of("M"), VOCABULARY)
    untied = HybridModel(config_of("M").model_copy(update={"is_head_tied": False}), VOCABULARY)

    assert count_parameters(untied) - count_parameters(tied) == VOCABULARY * 16
    initialize(untied, seed=0)
    assert not torch.equal(untied.head_VD, untied.embedding_VD)


def test_a_token_enters_the_stream_times_the_multiplier_in_a_full_pass_and_in_a_step(config_of, shaken) -> None:
    untied = config_of("AEMR").model_copy(update={"is_head_tied": False})
    times = HybridModel(untied.model_copy(update={"embedding_multiplier": 50.0}), VOCABULARY).double()
    larger = shaken(HybridModel(untied, VOCABULARY)).double()
    times.load_state_dict(larger.state_dict())
    with torch.no_grad():
        larger.embedding_VD.mul_(50)
    ids_BT = token_ids()

    torch.testing.assert_close(times(ids_BT, torch.ones_like(ids_BT)), larger(ids_BT, torch.ones_like(ids_BT)))
    steps = [model.step(ids_BT[:, 0], model.initial_state(2))[0] for model in (times, larger)]
    torch.testing.assert_close(*steps)
