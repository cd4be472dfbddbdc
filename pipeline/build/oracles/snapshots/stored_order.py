"""Oracle of the order of stored rows: the rows that follow one which they should precede.

It shares no code with the stages. Tokens and packed rows have no key of their own, but the reading order of the documents before
them: a packed row that of its first piece, the pieces of a row follow each other, and rows of commits come last.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.contracts.part import Tables
from pipeline.contracts.stage import READING_ORDER
from pipeline.core.table_names import ENRICHED, TOKENS

_NUMBERED_TWICE = " (of documents with one `order_in_source`: a stage that makes one part of shards numbers them anew)"
_PIECES = ("source_doc_ids", "piece_indices", "filepath_stable_id")


def misplaced_rows(
    name: str, table: str, order: Sequence[str], stored: Tables, before: Tables | None
) -> Iterator[tuple[str, str]]:
    """Yield the source `name` and the table with the index of each row that is not in the order of its table.

    `order` are the columns by which rows ascend, or READING_ORDER: then `before` holds the documents that the rows are made of. A
    number that no table before has is that of its row.
    """
    cause = ""
    if order != READING_ORDER:
        columns = [stored.table(table, list(order))[column].to_pylist() for column in order]
        keys = [(key, key) for key in zip(*columns, strict=True)]
    elif before is None:
        return
    else:
        documents = before.table(ENRICHED, ["document_id", "order_in_source"]).to_pylist()
        place = {row["document_id"]: (row["order_in_source"], row["document_id"]) for row in documents}
        keys = _of_documents(stored, place) if table == TOKENS else _of_rows(stored, table, place)
        cause = _NUMBERED_TWICE if len({number for number, _ in place.values()}) < len(place) else ""
    for index, (first, last) in enumerate(keys):
        is_of_number = before is not None or not isinstance(first[0], int) or first[0] == index
        if first > last or (index and first < keys[index - 1][0]) or not is_of_number:
            yield name, f"{table} row {index}{cause}"


def _of_documents(stored: Tables, place: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Return the place of each document twice. One that was not there before is no matter of order."""
    names = stored.table(TOKENS, ["document_id"])["document_id"].to_pylist()
    return [(place[name], place[name]) for name in names if name in place]


def _of_rows(stored: Tables, table: str, place: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Return the place of the first piece of each row, and that of the last one, or an earlier one if they are not in order."""
    keys: list[tuple[Any, Any]] = []
    for row in stored.table(table, list(_PIECES)).to_pylist():
        is_of_commits = row["filepath_stable_id"] is not None
        pieces = zip(row["source_doc_ids"], row["piece_indices"], strict=False)
        places = [(False, place[name], index) for name, index in pieces if name in place]
        if is_of_commits:
            keys.append(((True,), (True,)))
        elif places:
            keys.append((places[0], places[-1] if places == sorted(places) else (False,)))
    return keys
