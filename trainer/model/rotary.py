"""Rotation of pairs of channels by given angles: rotary positions, and the complex states of Mamba-3.

Shapes: ... any leading axes, N channels, S rotated pairs (2 S <= N).
"""

import torch
from torch import Tensor


def rotate_pairs(vectors_N: Tensor, phases_S: Tensor) -> Tensor:
    """Turn the pair (2i, 2i+1) of the last axis by `phases[..., i]` radians for i < S; the channels after 2 S stay.

    Leading axes of the phases broadcast against those of the vectors. Angles keep their own dtype, the result has that
    of the vectors: a position has more digits than bfloat16. Source: Su et al. 2021, arXiv 2104.09864.
    """
    num_turned = 2 * phases_S.shape[-1]
    turned, rest = vectors_N[..., :num_turned], vectors_N[..., num_turned:]
    even_S, odd_S = turned[..., 0::2], turned[..., 1::2]
    cosine_S, sine_S = phases_S.cos(), phases_S.sin()
    pairs_S2 = torch.stack((even_S * cosine_S - odd_S * sine_S, even_S * sine_S + odd_S * cosine_S), dim=-1)
    return torch.cat((pairs_S2.flatten(-2).to(vectors_N.dtype), rest), dim=-1)
