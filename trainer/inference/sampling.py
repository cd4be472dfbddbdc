"""Sampling of text from a checkpoint: one token after the other, with carried state and a generator of its own.

Of n completions, the i-th has a generator seeded with seed + i and is decoded alone, so that it does not depend on the others.
The likeliest, by the mean logarithm of its tokens' probabilities, comes first; where completions end with the braces that the
prompt left open (`until_closed`), those that closed them all come before the others.

Shapes: B rows, T tokens of a row, V vocabulary.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from pydantic import ValidationError
from torch import Tensor

from pipeline.core.errors import TrainingError
from pipeline.store.snapshot import Snapshot, open_snapshot
from pipeline.store.store import Store
from trainer.checkpoint import checkpoint as checkpoints
from trainer.config.training_config import TrainingConfig
from trainer.model.hybrid import DecodingState, HybridModel
from trainer.train.determinism import make_deterministic

_LEAST_TEMPERATURE = 1e-6
"""Below it the likeliest token is taken: scores divided by less leave the range of a float."""
_WIDE = 512


@dataclass(frozen=True)
class SamplingOptions:
    """Options of sampling. `top_k` and `top_p` narrow the choice of tokens; None does not.

    `until_closed` ends a completion with the token that closes the last brace that the prompt, or itself, left open.
    """

    num_tokens: int = 48
    seed: int = 42
    temperature: float = 0.7
    top_k: int | None = None
    top_p: float | None = None
    num_completions: int = 1
    until_closed: bool = False


class SampledTokens(NamedTuple):
    """Tokens, the mean logarithm of their probabilities under the model, and whether EOS, or the last brace, ended them."""

    token_ids: list[int]
    mean_log_probability: float
    has_ended: bool
    is_closed: bool = False


@dataclass(frozen=True)
class Completion:
    """Completion without its prompt, and the seed that samples it alone."""

    text: str
    token_ids: list[int]
    seed: int
    mean_log_probability: float
    has_ended: bool
    is_closed: bool


@dataclass(frozen=True)
class TrainedModel:
    """Model with the weights of a checkpoint, and the snapshot that it was trained on."""

    model: HybridModel
    snapshot: Snapshot
    config: TrainingConfig

    @property
    def specials(self) -> Mapping[str, int]:
        """Ids of the special tokens by name."""
        return dict(self.snapshot.vocabulary["specials"])

    @property
    def max_tokens(self) -> int:
        """Most tokens of a prompt and its completion together: those of a row."""
        return min(int(self.snapshot.row_length), self.config.model.max_row_tokens)


def sample(store: Store, checkpoint_id: str, prompt: str | Sequence[int], options: SamplingOptions) -> list[Completion]:
    """Sample completions of a text or of token ids, likeliest first. The same arguments give the same texts.

    Needs the library `tokenizers`. Raises TrainingError if it is not installed, or if the prompt is not valid Unicode, has ids
    that the vocabulary lacks, leaves no room for the requested tokens, or has no open brace to sample until it is closed.
    """
    _refuse_out_of_range(options)
    trained = open_trained(store, checkpoint_id, options.seed)
    tokenizer = load_tokenizer(trained.snapshot)
    ids = _prompt_ids(trained, tokenizer, prompt)
    if len(ids) + options.num_tokens > trained.max_tokens:
        found, limit = f"{len(ids)} tokens and {options.num_tokens} to sample", f"at most {trained.max_tokens} together"
        raise TrainingError("prompt", found, limit, "Shorten it, or use a smaller --tokens.")
    braces = Braces(tokenizer, ids) if options.until_closed else None
    completions = []
    for seed in range(options.seed, options.seed + options.num_completions):
        ids_, *rest = sample_tokens(trained.model, ids, options, seed, trained.specials, braces)
        completions.append(Completion(tokenizer.decode(ids_, skip_special_tokens=False), ids_, seed, *rest))
    return sorted(completions, key=lambda completion: (not completion.is_closed, -completion.mean_log_probability))


class Braces:
    """Braces that are open after a prompt, and those that each token opens, also in comments and literals."""

    def __init__(self, tokenizer: Any, prompt_ids: Sequence[int]) -> None:
        self.tokenizer = tokenizer
        self.num_open = sum(map(self.opened_by, prompt_ids))
        if self.num_open < 1:
            remedy = "Give a prompt that ends within braces, or leave out --until-closed."
            raise TrainingError("prompt", f"{self.num_open} of its braces are open", "at least one", remedy)

    def opened_by(self, id_: int) -> int:
        """Return how many braces more a token opens than it closes."""
        text = self.tokenizer.decode([id_])
        return int(text.count("{") - text.count("}"))


def open_trained(store: Store, checkpoint_id: str, seed: int = 42) -> TrainedModel:
    """Load the model of a checkpoint for inference. Raises TrainingError for a configuration of another version."""
    found = checkpoints.load(store, checkpoint_id)
    snapshot = open_snapshot(store, found.last_snapshot)
    config = _config_of(found.identity, checkpoint_id)
    # The products of one token of a small model take less time than starting a second thread.
    make_deterministic(seed, config.num_threads if config.model.width >= _WIDE else 1)
    model = HybridModel(config.model, snapshot.vocabulary["size"])
    model.load_state_dict(dict(found.parameters))
    return TrainedModel(model.eval(), snapshot, config)


@torch.no_grad()
def sample_tokens(
    model: HybridModel,
    prompt_ids: Sequence[int],
    options: SamplingOptions,
    seed: int,
    specials: Mapping[str, int],
    braces: Braces | None = None,
) -> SampledTokens:
    """Continue `prompt_ids` until EOS, the last of the `braces`, or `options.num_tokens`.

    Of the special tokens, only EOS is sampled.
    """
    generator = torch.Generator().manual_seed(seed)
    eos = specials["<|eos|>"]
    forbidden = torch.tensor(sorted(id_ for name, id_ in specials.items() if name != "<|eos|>"))
    state = model.initial_state(1)
    *earlier_ids, next_id = prompt_ids
    for id_ in earlier_ids:
        _, state = model.step(torch.tensor([id_]), state)
    ids: list[int] = []
    logarithms: list[float] = []
    num_open = 0 if braces is None else braces.num_open
    while len(ids) < options.num_tokens:
        scores_V, state = _score_next(model, next_id, state)
        allowed_V = scores_V.index_fill(0, forbidden, -torch.inf)
        next_id = sample_token(allowed_V, options, generator)
        logarithms.append(float(torch.log_softmax(allowed_V, -1)[next_id]))
        if next_id == eos:
            break
        ids.append(next_id)
        if braces is not None:
            num_open += braces.opened_by(next_id)
            if num_open <= 0:
                break
    has_eos, is_closed = len(logarithms) > len(ids), braces is not None and num_open <= 0
    return SampledTokens(ids, math.fsum(logarithms) / len(logarithms), has_eos or is_closed, is_closed)


def sample_token(scores_V: Tensor, options: SamplingOptions, generator: torch.Generator) -> int:
    """Sample one token by its score: the likeliest at temperature 0, else among the top k and the top p."""
    if options.temperature < _LEAST_TEMPERATURE:
        return int(scores_V.argmax())
    ordered_V, tokens_V = torch.sort(scores_V / options.temperature, descending=True, stable=True)
    probabilities_V = torch.softmax(ordered_V[: options.top_k], -1)
    if options.top_p is not None:
        before_V = probabilities_V.cumsum(0) - probabilities_V
        # The likeliest token stays for any top_p.
        probabilities_V = probabilities_V * ((before_V < options.top_p) | (torch.arange(len(before_V)) == 0))
    return int(tokens_V[torch.multinomial(probabilities_V, 1, generator=generator)])


def load_tokenizer(snapshot: Snapshot) -> Any:
    """Load the snapshot's tokenizer. Raises TrainingError if the library is not installed."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        remedy = "Install it, then run again."
        raise TrainingError("sampling", "the library tokenizers is not installed", "", remedy) from error
    return Tokenizer.from_file(str(snapshot.tokenizer_file))


def _score_next(model: HybridModel, id_: int, state: DecodingState) -> tuple[Tensor, DecodingState]:
    """Return the scores of the token after `id_`, and the state after it."""
    hidden_BD, state = model.step(torch.tensor([id_]), state)
    scores_V = model.logits(hidden_BD[0]).float()
    if not bool(scores_V.isfinite().all()):
        remedy = "Use a checkpoint from before the loss spike."
        raise TrainingError("model", "its scores are not finite", "finite numbers", remedy)
    return scores_V, state


def _prompt_ids(trained: TrainedModel, tokenizer: Any, prompt: str | Sequence[int]) -> list[int]:
    """Return a prompt as ids, BOS first."""
    if isinstance(prompt, str):
        if any("\ud800" <= letter <= "\udfff" for letter in prompt):
            raise TrainingError("prompt", "it is not UTF-8", "", "Give it in UTF-8.")
        ids = list(tokenizer.encode(prompt).ids)
    else:
        ids = list(prompt)
    last = trained.model.vocabulary_size - 1
    unknown = [id_ for id_ in ids if not 0 <= id_ <= last]
    if unknown:
        remedy = "Correct --prompt-ids, or give the text by --prompt."
        raise TrainingError("prompt", f"id {unknown[0]} is not in the vocabulary", f"0 to {last}", remedy)
    bos = trained.specials["<|bos|>"]
    return ids if ids[:1] == [bos] else [bos, *ids]


def _refuse_out_of_range(options: SamplingOptions) -> None:
    if options.top_p is not None and not 0 <= options.top_p <= 1:
        raise TrainingError("--top-p", f"{options.top_p:g}", "a probability, 0 to 1", "Leave it out for all tokens.")
    if options.seed + options.num_completions > 2**63:
        raise TrainingError("--seed", f"{options.seed} and {options.num_completions - 1} after it", "at most 2^63 - 1")


def _config_of(identity: Mapping[str, Any], checkpoint_id: str) -> TrainingConfig:
    try:
        return TrainingConfig.model_validate(identity["config"])
    except ValidationError as error:
        found = f"its configuration is of another version ({error.errors()[0]['msg']})"
        raise TrainingError(f"checkpoint {checkpoint_id[:12]}", found) from error
