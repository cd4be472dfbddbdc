"""Text from a checkpoint: one token after the other, drawn with a generator of its own."""

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from pipeline.errors import TrainingError
from pipeline.snapshot import Snapshot, open_snapshot
from pipeline.store import Store
from trainer import checkpoint as checkpoints
from trainer.determinism import make_deterministic
from trainer.model.hybrid import HybridModel
from trainer.recipes import TrainingConfig

_LEAST_TEMPERATURE = 1e-6
"""Below it the likeliest token is taken: scores divided by less leave the range of a float."""


def sample(
    store: Store, checkpoint_id: str, prompt: str, num_tokens: int, seed: int = 42, temperature: float = 0.7
) -> str:
    """The prompt's completion, without the prompt. The same arguments give the same text.

    Needs the library `tokenizers`; raises TrainingError where it is not installed or the prompt fills the row.
    """
    found = checkpoints.load(store, checkpoint_id)
    snapshot = open_snapshot(store, found.identity["snapshot_id"])
    config = _config_of(found.identity, checkpoint_id)
    make_deterministic(seed, config.num_threads)
    model = HybridModel(config.model, snapshot.vocabulary["size"])
    model.load_state_dict(dict(found.parameters))
    return _complete(model.eval(), snapshot, prompt, num_tokens, torch.Generator().manual_seed(seed), temperature)


def _config_of(identity: Mapping[str, Any], checkpoint_id: str) -> TrainingConfig:
    try:
        return TrainingConfig.model_validate(identity["config"])
    except ValidationError as error:
        raise TrainingError(
            f"checkpoint {checkpoint_id[:12]}", f"its configuration is of another version ({error.errors()[0]['msg']})"
        ) from error


@torch.no_grad()
def _complete(
    model: HybridModel, snapshot: Snapshot, prompt: str, num_tokens: int, generator: torch.Generator, temperature: float
) -> str:
    if any("\ud800" <= letter <= "\udfff" for letter in prompt):
        raise TrainingError("prompt", "it is not UTF-8", "", "Give it in UTF-8.")
    tokenizer = _tokenizer(snapshot)
    specials = snapshot.vocabulary["specials"]
    ids = [specials["<|bos|>"], *tokenizer.encode(prompt).ids]
    first = len(ids)
    if first + num_tokens > snapshot.row_length:
        raise TrainingError(
            "prompt", f"{first} tokens and {num_tokens} to come", f"at most {snapshot.row_length} together"
        )
    forbidden = torch.tensor(sorted(id_ for name, id_ in specials.items() if name != "<|eos|>"))
    while len(ids) < first + num_tokens:
        next_id = _draw(_next_scores(model, ids).index_fill(0, forbidden, -torch.inf), generator, temperature)
        if next_id == specials["<|eos|>"]:
            break
        ids.append(next_id)
    text: str = tokenizer.decode(ids[first:], skip_special_tokens=False)
    return text


def _next_scores(model: HybridModel, ids: list[int]) -> Tensor:
    input_ids_BT = torch.tensor([ids])
    hidden_BTD = model(input_ids_BT, torch.ones_like(input_ids_BT, dtype=torch.int32))
    return model.logits(hidden_BTD[0, -1]).float()


def _draw(scores_V: Tensor, generator: torch.Generator, temperature: float) -> int:
    if temperature < _LEAST_TEMPERATURE:
        return int(scores_V.argmax())
    return int(torch.multinomial(torch.softmax(scores_V / temperature, -1), 1, generator=generator))


def _tokenizer(snapshot: Snapshot):  # type: ignore[no-untyped-def]  # the library is optional here
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise TrainingError(
            "sampling", "the library tokenizers is not installed", "", "Install it, then run again."
        ) from error
    return Tokenizer.from_file(str(snapshot.tokenizer_file))
