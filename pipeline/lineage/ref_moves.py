"""Moves of refs on the page of a report: a table of its own, which whoever serves the page makes anew from the history.

A page is written once, and refs move later. All else on it is of the build, which stays as it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pipeline.core.errors import SluiceError
from pipeline.store.refs import LAST
from pipeline.store.snapshot import REFS
from pipeline.store.store import Store
from pipeline.store.store_layout import is_name

_TEMPLATE = "ref_moves.html"
_BEGIN, _END = "<!-- moves of refs: ", "<!-- end of moves -->"
"""Marks around the table; a text of the corpus cannot hold them, as its `<` is escaped."""
_NUM_MOVES = 10
_KEYS = ("ref", "new", "old", "when", "reason", "other_limits")


def ref_rows(store: Store, corpus: str) -> Iterator[dict[str, Any]]:
    """Yield the last moves of each ref that people use, `live` first, the newest first, each with its time and reason."""
    history = store.history(corpus)
    for name in (*REFS, LAST):
        moves = [entry for entry in reversed(history) if entry["ref"] == name][:_NUM_MOVES]
        yield from ({key: entry.get(key, "") for key in _KEYS} for entry in moves)


def moves_table(corpus: str, rows: Sequence[Mapping[str, Any]], error: str = "") -> str:
    """Render moves of refs as a table between marks, which name the corpus; `error` is why none can be listed."""
    table = page_environment().get_template(_TEMPLATE).render(moves=rows, error=error)
    return f"{_BEGIN}{corpus} -->\n{table}{_END}"


def page_environment() -> Environment:
    """Return the environment of the templates of a report's page, in which all text of the corpus is escaped."""
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def with_moves(page: str, store: Store) -> str:
    """Return the page of a report with the moves that the history has now. A page without marks is returned as it is."""
    before, mark, rest = page.partition(_BEGIN)
    corpus, is_named, rest = rest.partition(" -->")
    _, end, after = rest.partition(_END)
    if not (mark and is_named and end and is_name(corpus)):
        return page
    try:
        table = moves_table(corpus, list(ref_rows(store, corpus)))
    except SluiceError as error:
        table = moves_table(corpus, [], str(error))
    return f"{before}{table}{after}"
