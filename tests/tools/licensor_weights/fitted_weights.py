"""Weights of the signs of sentences: a logistic regression with a penalty on squares, fitted in double precision and rounded."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch

SCALE = 20
"""Integer weight of one unit of log odds."""
PENALTY = 2.0
PRIOR = 0.05
"""Share of the whole that the limiting sentences are counted as, however few they are."""
_MIN_NUM_LIMITING = 2
_MIN_NUM_OTHER = 30
_MIN_NUM_PAIRS = 200
_NUM_STEPS = 150


@dataclass(frozen=True)
class LabeledSigns:
    """The signs of a sentence, whether it limits, and how much it counts beside one from a header of a project."""

    signs: frozenset[str]
    is_limiting: bool
    share: float = 1.0


def fit_weights(sentences: Sequence[LabeledSigns]) -> dict[str, int]:
    """Return the integer weight of each sign that weighs anything, sorted; that of every sentence has the empty name."""
    places = {sign: place for place, sign in enumerate(_signs(sentences))}
    found = [[places[sign] for sign in each.signs if sign in places] for each in sentences]
    columns = torch.tensor([place for row in found for place in row])
    rows = torch.repeat_interleave(torch.arange(len(found)), torch.tensor([*map(len, found)]))
    labels = torch.tensor([float(each.is_limiting) for each in sentences], dtype=torch.float64)
    shares = torch.tensor([each.share for each in sentences], dtype=torch.float64)
    num_other = shares[labels == 0].sum()
    shares[labels == 1] = PRIOR * num_other / labels.sum()
    weights = torch.zeros(len(places) + 1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=_NUM_STEPS, line_search_fn="strong_wolfe", history_size=10)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        sums = torch.zeros_like(labels).index_add(0, rows, weights[:-1][columns]) + weights[-1]
        losses = torch.nn.functional.binary_cross_entropy_with_logits(sums, labels, reduction="none")
        loss = (shares * losses).sum() + PENALTY / 2 * (weights[:-1] ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    rounded = [round(each * SCALE) for each in weights.tolist()]
    return {"": rounded[-1], **{sign: rounded[place] for sign, place in places.items() if rounded[place]}}


def _signs(sentences: Sequence[LabeledSigns]) -> list[str]:
    """Return the signs that are learned: those of limiting sentences, and those of others that are frequent."""
    limiting: Counter[str] = Counter()
    other: Counter[str] = Counter()
    for each in sentences:
        (limiting if each.is_limiting else other).update(each.signs)
    return sorted(sign for sign in limiting | other if _is_learned(sign, limiting[sign], other[sign]))


def _is_learned(sign: str, num_limiting: int, num_other: int) -> bool:
    if num_limiting >= _MIN_NUM_LIMITING:
        return True
    if sign.startswith("b:"):
        return num_other >= _MIN_NUM_PAIRS
    return num_other >= (_MIN_NUM_OTHER if sign.startswith(("w:", "^w:")) else _MIN_NUM_LIMITING)
