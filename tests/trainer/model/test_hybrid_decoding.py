"""Decoding one token at a time equals the full pass, block by block and for the whole stack, also across documents."""

import pytest
import torch

from trainer.config.presets import preset
from trainer.model.hybrid import HybridModel
from trainer.model.segments import StepToken, describe_rows

VOCABULARY, NUM_TOKENS = 60, 27
# Documents of one token, of the convolution's width, one whose end is a chunk's, and a row of one document.
LENGTHS = [[1, 1, 4, 2, 16, 3], [27]]


@pytest.fixture
def double_of(config_of, shaken):
    return lambda pattern: shaken(HybridModel(config_of(pattern), VOCABULARY)).double()


def token_ids(num_rows: int = 2) -> torch.Tensor:
    return torch.randint(0, VOCABULARY, (num_rows, NUM_TOKENS), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("letter", "AEMR")
def test_a_block_decoded_step_by_step_equals_its_full_pass(double_of, doc_ids_from, letter: str) -> None:
    block = double_of(letter).layers[0].block
    rows = describe_rows(token_ids(), doc_ids_from(LENGTHS, NUM_TOKENS))
    hidden_BTD = torch.randn(2, NUM_TOKENS, 16, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected_BTD = block(hidden_BTD, rows).update_BTD

    state = block.initial_state(2)
    for t in range(NUM_TOKENS):
        token = StepToken(rows.input_ids_BT[:, t], rows.segments.positions_BT[:, t])
        update_BD, state = block.step(hidden_BTD[:, t], token, state)
        torch.testing.assert_close(update_BD, expected_BTD[:, t], rtol=1e-9, atol=1e-11, msg=f"token {t}")


@pytest.mark.parametrize("pattern", ["AEMR", "AEMEAEMEAEMR"])
def test_a_model_decoded_step_by_step_equals_its_full_pass(double_of, doc_ids_from, pattern: str) -> None:
    model, ids_BT, doc_ids_BT = double_of(pattern), token_ids(), doc_ids_from(LENGTHS, NUM_TOKENS)
    expected_BTD = model(ids_BT, doc_ids_BT)
    is_start_BT = describe_rows(ids_BT, doc_ids_BT).segments.document_starts_BT

    state = model.initial_state(2)
    for t in range(NUM_TOKENS):
        hidden_BD, state = model.step(ids_BT[:, t], state, is_start_BT[:, t])
        torch.testing.assert_close(hidden_BD, expected_BTD[:, t], rtol=1e-8, atol=1e-9, msg=f"token {t}")


def test_one_row_of_the_tiny_preset_decodes_as_it_reads_in_float32(shaken) -> None:
    model, ids_BT = shaken(HybridModel(preset("tiny"), VOCABULARY)).eval(), token_ids(num_rows=1)
    expected_TD = model(ids_BT, torch.ones_like(ids_BT))[0]

    state, hidden = model.initial_state(1), []
    for t in range(NUM_TOKENS):
        hidden_BD, state = model.step(ids_BT[:, t], state)
        hidden.append(hidden_BD[0])

    torch.testing.assert_close(torch.stack(hidden), expected_TD, rtol=1e-4, atol=1e-4)


def test_rows_decode_side_by_side_as_alone_and_more_rows_than_slots_lose_nothing(double_of) -> None:
    model, ids_BT = double_of("AEMR"), token_ids(200)[:, :3]

    together, alone = model.initial_state(200), model.initial_state(1)
    for t in range(3):
        hidden_BD, together = model.step(ids_BT[:, t], together)
        last_BD, alone = model.step(ids_BT[-1:, t], alone)

    torch.testing.assert_close(hidden_BD[-1:], last_BD, rtol=1e-10, atol=1e-12)
