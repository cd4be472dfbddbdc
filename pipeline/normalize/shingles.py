"""What near-duplicates are compared by: sets of five-token shingles, and their MinHash signatures.

Comments are left out, the licence header with them. Operators are whole: `a->b` is not `a.b`. The signature is
datasketch's `affine32` scheme bit for bit: `min over h of a * fmix32(h) + b mod 2^32`, a odd. Source: Broder 1997;
datasketch 2.0.
"""

import hashlib
import re
from functools import cache

import numpy as np
from numpy.typing import NDArray

NUM_PERMUTATIONS = 256
NUM_TOKENS_IN_SHINGLE = 5

_BLOCK = 512
_RAW_STRING = re.compile(r'R"([^ ()\\\t\n]{0,16})\(([\s\S]*?)\)\1"')
# One group, around what is a token: a comment matches outside it and comes back empty.
_TOKENS = re.compile(
    r"//[^\n\\]*(?:\\[\s\S][^\n\\]*)*|/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|\Z)|\\\n|"
    r"([^\W\d]\w*"
    r"|\.?\d(?:[eEpP][+-]|'\w|[\w.])*"
    r'|"(?:[^"\\\n]|\\[\s\S])*"?'
    r"|'(?:[^'\\\n]|\\[\s\S])*'?"
    r"|<<=|>>=|<=>|->\*|\.\.\.|::|->|\+\+|--|&&|\|\||[-+*/%&|^!=<>]=|<<|>>|\.\*|##"
    r"|[^\s\w])"
)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class _TokenHashes(dict[str, int]):
    """64-bit hash of each distinct token, computed once a process."""

    def __missing__(self, token: str) -> int:
        if len(self) > 1_000_000:  # a bound on memory, not on meaning
            self.clear()
        value = int.from_bytes(
            hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
        )
        self[token] = value
        return value


_token_hashes = _TokenHashes()


def tokens(text: str) -> list[str]:
    """The C and C++ tokens of a text, comments left out.

    Total: what is no token of the language is one by its character.
    """
    if 'R"' in text:
        text = _RAW_STRING.sub(lambda match: f'"{hashlib.sha256(match[2].encode()).hexdigest()}"', text)
    return [token for token in _TOKENS.findall(text) if token]


def shingle_hashes(tokens_of_text: list[str]) -> NDArray[np.uint64]:
    """The set of shingles as sorted distinct 64-bit hashes; empty for fewer than five tokens."""
    return run_hashes(token_hashes(tokens_of_text), NUM_TOKENS_IN_SHINGLE)


def token_hashes(tokens_of_text: list[str]) -> NDArray[np.uint64]:
    """The 64-bit hash of each token, in order."""
    return np.fromiter(map(_token_hashes.__getitem__, tokens_of_text), np.uint64, len(tokens_of_text))


def run_hashes(hashes: NDArray[np.uint64], length: int) -> NDArray[np.uint64]:
    """The set of runs of `length` tokens as sorted distinct 64-bit hashes; empty for fewer tokens."""
    ordered = np.sort(hashes_of_runs(hashes, length))  # np.unique hashes first, which is slower
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


def hashes_of_runs(hashes: NDArray[np.uint64], length: int) -> NDArray[np.uint64]:
    """The 64-bit hash of each run of `length` tokens, in order."""
    num_runs = len(hashes) - length + 1
    if num_runs < 1:
        return np.empty(0, np.uint64)
    mixed = np.zeros(num_runs, np.uint64)
    for offset in range(length):
        mixed *= _MULTIPLIER
        mixed += hashes[offset : offset + num_runs]
    return _fmix64(mixed)


def jaccard(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> float:
    """|A & B| / |A | B| of two sorted distinct sets; 0 where both are empty."""
    num_shared = len(np.intersect1d(first, second, assume_unique=True))
    num_either = len(first) + len(second) - num_shared
    return num_shared / num_either if num_either else 0.0


def hashes_for_minhash(shingles: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """The 32-bit hashes that the signature is taken over: the upper half of each shingle's hash."""
    return (shingles >> np.uint64(32)).astype(np.uint32)


def signature(hashes: NDArray[np.uint32], seed: int) -> NDArray[np.uint32]:
    """The MinHash signature, shape (256,).

    Bit-identical to `datasketch.MinHash(num_perm=256, scheme="affine32", seed=seed)`.
    """
    multipliers, increments = _permutations(seed)
    mixed = _fmix32(hashes)[:, None]
    lowest = np.full(NUM_PERMUTATIONS, np.iinfo(np.uint32).max, np.uint32)
    buffer = np.empty((_BLOCK, NUM_PERMUTATIONS), np.uint32)
    for start in range(0, len(mixed), _BLOCK):  # blocks stay in the cache
        block = mixed[start : start + _BLOCK]
        values = np.multiply(block, multipliers, out=buffer[: len(block)])
        values += increments
        np.minimum(lowest, values.min(axis=0), out=lowest)
    return lowest


@cache
def _permutations(seed: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    # The draws of datasketch's affine32 in their order. Numpy has frozen this generator (NEP 19).
    generator = np.random.RandomState(seed)
    multipliers = generator.randint(0, 1 << 31, NUM_PERMUTATIONS, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    return multipliers, generator.randint(0, 1 << 32, NUM_PERMUTATIONS, dtype=np.uint32)


def _fmix32(values: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """MurmurHash3's 32-bit finalizer."""
    values = (values ^ (values >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    values = (values ^ (values >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return values ^ (values >> np.uint32(16))


def _fmix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """MurmurHash3's 64-bit finalizer."""
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return values ^ (values >> np.uint64(33))
