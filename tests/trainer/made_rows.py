"""Rows for the loader's tests: every text token of a table is different, so that nothing can be lost unseen."""

import pyarrow as pa

from pipeline.records import TrainingRow
from pipeline.schema import arrow_schema, table_of
from pipeline.tokenize.fim import InfillingParams
from trainer.loader import LoaderConfig, RowLayout, Source
from trainer.rows import TrainingRows

T = 32
PAD, BOS, EOS, PREFIX, MIDDLE, SUFFIX = range(6)
NAMES = ("pad", "bos", "eos", "fim_prefix", "fim_middle", "fim_suffix")
SPECIALS = {f"<|{name}|>": number for number, name in enumerate(NAMES)}
LAYOUT = RowLayout.of("a" * 64, T, SPECIALS)
CONFIG = LoaderConfig(seed=5)
PLAIN = LoaderConfig(seed=5, infilling=InfillingParams(rate=0))


def rows_of(num_rows: int, first_token: int) -> pa.Table:
    """Rows of two pieces, 9 and 11 text tokens with EOS behind the second; every text token of a table is different."""
    columns: dict[str, list[list[int]]] = {name: [] for name in arrow_schema(TrainingRow).names}
    for row in range(num_rows):
        start = first_token + 20 * row
        text = list(range(start, start + 20))
        columns["input_ids"].append([BOS, *text[:9], BOS, *text[9:], EOS, *[PAD] * 9])
        columns["lengths"].append([10, 13])
        columns["piece_ids"].append([start, start + 1])
        columns["chunk_counts"].append([2, 3])
        columns["chunk_starts"].append([1, 5, 11, 14, 18])
    return table_of(TrainingRow, columns)


def sources_of(**num_rows: int) -> list[Source]:
    tables = {name: rows_of(count, 100 + 20_000 * place) for place, (name, count) in enumerate(num_rows.items())}
    return [Source(name, TrainingRows(table)) for name, table in tables.items()]
