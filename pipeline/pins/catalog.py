"""Sources that are known and only listed. An entry has neither a locator nor a digest, so it can never reach a run."""

from itertools import pairwise
from pathlib import Path

from pydantic import Field, ValidationError

from pipeline.core.errors import PinError
from pipeline.core.params import Params
from pipeline.pins.pins import Slug, describe, read_tables

CATALOG = Path(__file__).parent / "catalog.toml"


class CatalogEntry(Params):
    """What a person wants to know before pinning a source."""

    name: Slug
    homepage: str = Field(pattern=r"^https?://\S+$")
    license: str
    """SPDX expression that the project declares; empty when it is not known."""
    note: str = ""
    """What makes it interesting or troublesome."""
    num_source_files: int | None = Field(default=None, ge=0)
    """C/C++ files in the release that was looked at."""
    source_megabytes: float | None = Field(default=None, ge=0)
    """Their size in MB (10^6 bytes)."""


def load_catalog(path: Path) -> tuple[CatalogEntry, ...]:
    """The `[[source]]` tables of a catalog, sorted by name. Raises PinError for a bad entry or a repeated name."""
    tables = read_tables(path, "source")
    entries = [_entry_of(table, number, path) for number, table in enumerate(tables, start=1)]
    names = sorted(entry.name for entry in entries)
    for name, following in pairwise(names):
        if name == following:
            raise PinError(f"{path}: {name}", "is listed twice", "one entry a source", "Remove one of them.")
    return tuple(sorted(entries, key=lambda entry: entry.name))


def _entry_of(table: dict[str, object], number: int, path: Path) -> CatalogEntry:
    try:
        return CatalogEntry.model_validate(table)
    except ValidationError as error:
        _, found, expected = describe(error)
        remedy = "A catalog lists; what is to run belongs into a pins file."
        raise PinError(f"{path}: {table.get('name', f'entry {number}')}", found, expected, remedy) from None
