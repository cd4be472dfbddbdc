"""Rows for the loader's tests: every text token of a table is different, so that nothing can be lost unseen."""

from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from pipeline.core.records import TrainingRow
from pipeline.core.schema import arrow_schema, table_of
from trainer.config.training_config import InfillingParams
from trainer.data.loader import Loader, LoaderConfig, Source
from trainer.data.mapped_rows import TrainingRows
from trainer.data.row_layout import RowLayout

T = 32
PAD, BOS, EOS, PREFIX, MIDDLE, SUFFIX = range(6)
NAMES = ("pad", "bos", "eos", "fim_prefix", "fim_middle", "fim_suffix")
FIRST_TEXT = 6
SPECIALS = {f"<|{name}|>": number for number, name in enumerate(NAMES)}
LAYOUT = RowLayout.of("a" * 64, T, SPECIALS)
CONFIG = LoaderConfig(seed=5)
PLAIN = LoaderConfig(seed=5, infilling=InfillingParams(rate=0))


def rows_of(num_rows: int, first_token: int, with_structure: bool = False) -> pa.Table:
    """Rows of two pieces, 9 and 11 text tokens with EOS after the second; every text token of a table is different.

    The structure of a text token is 1 + its id modulo 200, its level 1 + its id modulo 7.
    """
    columns: dict[str, list[list[int]]] = {field.name: [] for field in arrow_schema(TrainingRow) if not field.nullable}
    if with_structure:
        columns |= {"structure_kinds": [], "structure_levels": []}
    for row in range(num_rows):
        start = first_token + 20 * row
        text = list(range(start, start + 20))
        columns["input_ids"].append([BOS, *text[:9], BOS, *text[9:], EOS, *[PAD] * 9])
        columns["lengths"].append([10, 13])
        columns["piece_ids"].append([start, start + 1])
        columns["chunk_counts"].append([2, 3])
        columns["chunk_starts"].append([1, 5, 11, 14, 18])
        for name, modulus in (("structure_kinds", 200), ("structure_levels", 7)):
            if with_structure:
                columns[name].append(
                    [1 + id_ % modulus if id_ >= FIRST_TEXT else 0 for id_ in columns["input_ids"][-1]]
                )
    return table_of(TrainingRow, columns)


def sources_of(with_structure: bool = False, **num_rows: int) -> list[Source]:
    tables = {
        name: rows_of(count, 100 + 20_000 * place, with_structure)
        for place, (name, count) in enumerate(num_rows.items())
    }
    return [Source(name, TrainingRows(table)) for name, table in tables.items()]


class RowPlace(NamedTuple):
    """Index of a source in `Loader.sources`, its epoch and its row."""

    source: int
    epoch: int
    row: int


def place_at(loader: Loader, position: int) -> RowPlace:
    """Return the row at one position of a loader."""
    return RowPlace(*(int(column[0]) for column in loader.locate(position, 1)))


def with_lanes(sources: list[Source]) -> list[Source]:
    """Return sources of which a compiler is said to have read every seventh row: it reads nothing of the made corpus."""
    return [replace(source, rows=_compiled(source.rows)) for source in sources]


def _compiled(rows: TrainingRows) -> TrainingRows:
    table = rows._table
    lanes = ["syntax_only" if row % 7 else "build_aware" for row in range(len(rows))]
    place, field = table.schema.get_field_index("provenance"), table.schema.field("provenance")
    return TrainingRows(table.set_column(place, field, pa.array(lanes, field.type)))
