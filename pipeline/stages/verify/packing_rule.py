"""Packing rule, judged from the stored tables alone: where documents are cut, and how full rows are. It shares no code with `pack`.

A piece is as long as a row has room for, but ends where the last chunk in reach starts, if that leaves little room, or where the
last line does. No two rows of a window, whose pieces may be together, would fit into one.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from pipeline.contracts.training_row import NUM_SENTINELS, ROW_GROUP
from pipeline.stages.verify.list_values import BoolArray, IntArray, lists

_LINE_END = "\N{LATIN CAPITAL LETTER C WITH DOT ABOVE}"
"""The character by which byte-level tokenizers spell a line feed."""


def count_pieces_cut_otherwise(
    tokens: pa.Table, packed: pa.Table, tokenizer: Tokenizer, rule: Mapping[str, Any]
) -> int:
    """Count pieces that end elsewhere than the rule has it, given where they begin. `rule` has the Params of tokenize."""
    sizes: dict[str, dict[int, int]] = defaultdict(dict)
    columns = ("source_doc_ids", "piece_indices", "source_doc_token_lengths")
    for row in zip(*(packed[name].to_pylist() for name in columns), strict=True):
        for name, index, size in zip(*row, strict=True):
            sizes[name][index] = size
    ends_line, num_wrong = _ends_line(tokenizer), 0
    names = tokens["document_id"].to_pylist()
    for name, ids_N, starts_C in zip(names, lists(tokens["input_ids"]), lists(tokens["chunk_starts"]), strict=True):
        if name in sizes:
            starts_L = np.flatnonzero(ends_line[np.minimum(ids_N, len(ends_line) - 1)]) + 1
            pieces = [size for _, size in sorted(sizes[name].items())]
            num_wrong += _num_cut_otherwise(pieces, len(ids_N), (starts_C, starts_L), rule)
    return num_wrong


def count_rows_not_filled(tokens: pa.Table, packed: pa.Table, rule: Mapping[str, Any]) -> int:
    """Count rows that would fit into the emptiest one of their window, or of more than one piece where each has a row of its own.

    Rows of commits end where the next commit does not follow: they are not counted.
    """
    places = {name: place for place, name in enumerate(tokens["document_id"].to_pylist())}
    groups = list(zip(*(tokens[name].to_pylist() for name in ROW_GROUP), strict=True))
    columns = ("filepath_stable_id", "source_doc_ids", "piece_indices", "source_doc_token_lengths")
    rows = [row for row in zip(*(packed[name].to_pylist() for name in columns), strict=True) if row[0] is None]
    if rule["packing"] == "single_doc":
        return sum(len(names) != 1 for _, names, _, _ in rows)
    pieces: dict[Any, list[tuple[tuple[int, int], int]]] = defaultdict(list)
    used: list[int] = []
    for number, (_, names, indices, sizes) in enumerate(rows):
        used.append(sum(sizes) + NUM_SENTINELS * len(sizes))
        for name, index in zip(names, indices, strict=True):
            place = places.get(name, -1)
            pieces[groups[place] if place >= 0 else None].append(((place, index), number))
    windows: dict[Any, set[int]] = defaultdict(set)
    for group, found in pieces.items():
        for rank, (_, number) in enumerate(sorted(found)):
            windows[group, rank // rule["window_pieces"]].add(number)
    return sum(_num_that_fit([used[number] for number in window], rule["row_length"]) for window in windows.values())


def _num_that_fit(used: Sequence[int], row_length: int) -> int:
    """Return how many rows the emptiest one has room for."""
    emptiest, *others = sorted(used)
    return sum(emptiest + each <= row_length for each in others)


def _num_cut_otherwise(
    sizes: Sequence[int], num_tokens: int, starts: tuple[IntArray, IntArray], rule: Mapping[str, Any]
) -> int:
    """Return how many pieces of a document end elsewhere. A piece has a slot for BOS, and the last one another for EOS."""
    room, begin, num_wrong = rule["row_length"] - NUM_SENTINELS - 1, 0, 0
    max_waste = int(rule["max_cut_waste_fraction"] * rule["row_length"])
    for size in sizes:
        end = begin + size - 1
        if num_tokens + 1 - begin <= room:
            expected = num_tokens + 1
        else:
            limit = min(begin + room, num_tokens - 1)
            chunk, line = (int(each[(each > begin) & (each <= limit)].max(initial=0)) for each in starts)
            is_near = chunk > 0 and limit - chunk <= max_waste
            expected = chunk if is_near else max(chunk, line) or limit
        num_wrong += end != expected
        begin = end
    return num_wrong


@lru_cache(maxsize=2)
def _ends_line(tokenizer: Tokenizer) -> BoolArray:
    spelled = (tokenizer.id_to_token(number) or "" for number in range(tokenizer.get_vocab_size()))
    return np.array([each.endswith(_LINE_END) for each in spelled], dtype=np.bool_)
