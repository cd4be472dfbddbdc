"""Drawing tokens: what narrows the choice, and which generator draws."""

import math

import pytest
import torch

from pipeline.core.errors import TrainingError
from trainer.config.presets import preset
from trainer.inference.sampling import Braces, SamplingOptions, sample_token, sample_tokens
from trainer.model.hybrid import HybridModel
from trainer.model.initialization import initialize

SPECIALS = {"<|pad|>": 0, "<|bos|>": 1, "<|eos|>": 2}
SCORES = torch.log(torch.tensor([0.05, 0.4, 0.3, 0.15, 0.1]))


@pytest.fixture(scope="module")
def model() -> HybridModel:
    # With the multiplier larger scores would be those of the token that was read.
    built = HybridModel(preset("tiny").model_copy(update={"embedding_multiplier": None}), 64)
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


class Letters:
    """A tokenizer of which an id below 8 is a brace or two, and any other a letter."""

    def decode(self, ids: list[int]) -> str:
        return "".join({4: "{", 5: "}", 6: "} {", 7: "}}"}.get(id_, "x") for id_ in ids)


def test_a_completion_ends_with_the_last_open_brace(model: HybridModel) -> None:
    """The same tokens as without the option, up to the first that leaves no brace open."""
    draw = SamplingOptions(num_tokens=60, temperature=2.0)
    are_closed = set()
    for seed in range(8):
        braces = Braces(Letters(), [1, 4, 9, 4])
        free = sample_tokens(model, [1, 4, 9, 4], draw, seed, SPECIALS)
        found = sample_tokens(model, [1, 4, 9, 4], draw, seed, SPECIALS, braces)

        is_open = [2 + sum(map(braces.opened_by, free.token_ids[: n + 1])) > 0 for n in range(len(free.token_ids))]
        num_expected = len(is_open) if all(is_open) else is_open.index(False) + 1
        assert found.token_ids == free.token_ids[:num_expected]
        assert found.is_closed == (not all(is_open))
        assert found.has_ended == (found.is_closed or free.has_ended)
        assert not free.is_closed
        are_closed.add(found.is_closed)
    assert are_closed == {True, False}


def test_a_prompt_without_an_open_brace_is_refused() -> None:
    with pytest.raises(TrainingError, match="prompt: 0 of its braces are open; expected at least one"):
        Braces(Letters(), [4, 9, 5])
