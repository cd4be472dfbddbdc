"""Further merges: those that byte-pair encoding adds to the merges of a vocabulary, which words are cut by already.

A step joins the pair of neighbors that is most frequent, ties by its spelling, as a training from single bytes does.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

Pair = tuple[str, str]


def further_merges(words: Mapping[tuple[str, ...], int], max_length: int) -> Iterator[Pair]:
    """Iterate over merges of words, given as tokens with how often each occurs; none makes a token longer than `max_length`."""
    pieces, numbers = [list(word) for word in words], list(words.values())
    counts: Counter[Pair] = Counter()
    places: dict[Pair, set[int]] = defaultdict(set)
    for index, word in enumerate(pieces):
        for pair in pairwise(word):
            counts[pair] += numbers[index]
            places[pair].add(index)
    queue = [(-count, pair) for pair, count in counts.items()]
    heapify(queue)
    while queue:
        negative, pair = heappop(queue)
        if not negative or counts[pair] != -negative or len("".join(pair)) > max_length:
            continue  # of a pair whose count has changed, the queue has a newer entry
        yield pair
        changed: set[Pair] = set()
        for index in places.pop(pair):
            before, after = pieces[index], merged(pieces[index], pair)
            for word, sign in ((before, -1), (after, 1)):
                for neighbors in pairwise(word):
                    counts[neighbors] += sign * numbers[index]
                    changed.add(neighbors)
            for neighbors in pairwise(after):
                places[neighbors].add(index)
            pieces[index] = after
        for neighbors in changed:
            heappush(queue, (-counts[neighbors], neighbors))


def merged(word: Sequence[str], pair: Pair) -> list[str]:
    """Return the tokens of a word with each occurrence of a pair joined, from the left."""
    found: list[str] = []
    place = 0
    while place < len(word):
        step = 2 if tuple(word[place : place + 2]) == pair else 1
        found.append("".join(word[place : place + step]))
        place += step
    return found
