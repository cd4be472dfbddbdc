"""Drawing tokens: what narrows the choice, and which generator draws."""

import math

import pytest
import torch

from pipeline.core.errors import TrainingError
from trainer.config.presets import preset
from trainer.inference.sampling import SamplingOptions, sample_token, sample_tokens
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize

SPECIALS = {"<|pad|>": 0, "<|bos|>": 1, "<|eos|>": 2}
SCORES = torch.log(torch.tensor([0.05, 0.4, 0.3, 0.15, 0.1]))


@pytest.fixture(scope="module")
def model() -> HybridModel:
    built = HybridModel(preset("tiny"), 64)
    initialize(built, seed=0)
    with torch.no_grad():
        built.embedding_VD.mul_(20)
    return built.eval()


def drawn_often(draw: SamplingOptions) -> dict[int, float]:
    generator = torch.Generator().manual_seed(0)
    tokens = [sample_token(SCORES, draw, generator) for _ in range(4000)]
    return {token: tokens.count(token) / len(tokens) for token in sorted(set(tokens))}


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (SamplingOptions(temperature=1.0), {0: 0.05, 1: 0.4, 2: 0.3, 3: 0.15, 4: 0.1}),
        (SamplingOptions(temperature=0.5), {0: 0.0088, 1: 0.561, 2: 0.316, 3: 0.079, 4: 0.035}),
        (SamplingOptions(temperature=1.0, top_k=2), {1: 4 / 7, 2: 3 / 7}),
        (SamplingOptions(temperature=1.0, top_k=99), {0: 0.05, 1: 0.4, 2: 0.3, 3: 0.15, 4: 0.1}),
        (SamplingOptions(temperature=1.0, top_p=0.69), {1: 4 / 7, 2: 3 / 7}),
        (SamplingOptions(temperature=1.0, top_p=0.71), {1: 0.4 / 0.85, 2: 0.3 / 0.85, 3: 0.15 / 0.85}),
        (SamplingOptions(temperature=1.0, top_p=0.0), {1: 1.0}),
        (SamplingOptions(temperature=1e30, top_k=1), {1: 1.0}),
        (SamplingOptions(temperature=0.0), {1: 1.0}),
    ],
)
def test_tokens_come_as_often_as_the_choice_says(draw: SamplingOptions, expected: dict[int, float]) -> None:
    found = drawn_often(draw)

    assert found.keys() == expected.keys()
    assert all(abs(found[token] - share) < 0.03 for token, share in expected.items()), found


def test_completions_equal_those_that_a_full_pass_for_every_token_draws(model: HybridModel) -> None:
    draw, prompt = SamplingOptions(num_tokens=12, temperature=1.0), [1, 7, 9]
    found = sample_tokens(model, prompt, draw, seed=3, specials=SPECIALS)

    model = model.requires_grad_(False)
    generator, ids, logarithms = torch.Generator().manual_seed(3), list(prompt), []
    for _ in range(12):
        ids_BT = torch.tensor([ids])
        scores_V = model.logits(model(ids_BT, torch.ones_like(ids_BT))[0, -1]).double()
        scores_V[[0, 1]] = -torch.inf
        order = sorted(range(64), key=lambda token: -scores_V[token])
        probabilities = torch.softmax(scores_V[order].float(), 0)
        ids.append(order[int(torch.multinomial(probabilities, 1, generator=generator))])
        logarithms.append(float(scores_V[ids[-1]] - scores_V.logsumexp(0)))
        if ids[-1] == 2:
            break

    assert found.token_ids == [token for token in ids[3:] if token != 2]
    assert found.has_ended == (ids[-1] == 2)
    assert found.mean_log_probability == pytest.approx(sum(logarithms) / len(logarithms), abs=1e-4)
    assert not {0, 1} & set(found.token_ids)


def test_a_seed_decides_and_the_global_generator_does_not(model: HybridModel) -> None:
    draw = SamplingOptions(num_tokens=8, temperature=1.0)
    first = sample_tokens(model, [1], draw, seed=5, specials=SPECIALS)
    torch.manual_seed(77)

    assert sample_tokens(model, [1], draw, seed=5, specials=SPECIALS) == first
    assert sample_tokens(model, [1], draw, seed=6, specials=SPECIALS) != first


def test_scores_that_are_not_finite_are_refused(model: HybridModel) -> None:
    broken = HybridModel(model.config, 64)
    broken.load_state_dict(model.state_dict() | {"norm.weight": torch.full((64,), math.nan)})

    with pytest.raises(TrainingError, match="its scores are not finite"):
        sample_tokens(broken, [1], SamplingOptions(), seed=0, specials=SPECIALS)
