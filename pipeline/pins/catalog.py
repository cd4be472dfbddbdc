"""Catalog of known sources, for people to read. An entry has neither a locator nor a digest, so a build cannot use it."""

from pathlib import Path

from pydantic import Field, ValidationError

from pipeline.core.errors import PinError, did_you_mean
from pipeline.core.params import Params
from pipeline.pins.pins import Slug, by_name, first_error, read_tables

CATALOG = Path(__file__).parent / "catalog.toml"


class CatalogEntry(Params):
    """Facts about a source that help to decide whether to pin it."""

    name: Slug
    homepage: str = Field(pattern=r"^https?://\S+$")
    license: str
    """SPDX expression that the project declares; empty when unknown."""
    note: str = ""
    """Note on what is special or difficult about it."""
    num_source_files: int | None = Field(default=None, ge=0)
    """Source files in the release that was inspected."""
    source_megabytes: float | None = Field(default=None, ge=0)
    """Their size in MB (10^6 bytes)."""


def load_catalog(path: Path) -> tuple[CatalogEntry, ...]:
    """Read the `[[source]]` tables of a catalog, sorted by name. Raises PinError for a bad entry or a repeated name."""
    return by_name(path, [_parse_entry(table, subject) for subject, table in read_tables(path, "source")])


def catalog_entry(name: str) -> CatalogEntry:
    """Return the cataloged source of that name. Raises PinError naming those that exist."""
    entries = {entry.name: entry for entry in load_catalog(CATALOG)}
    if name not in entries:
        remedy = "Add it there first, or pin a folder or a file of your own with `python -m pipeline pin NAME PATH`."
        remedy = f"{did_you_mean(name, entries)} {remedy}".strip()
        raise PinError(f"{CATALOG.name}: {name}", "is not listed", f"one of {', '.join(entries)}", remedy)
    return entries[name]


def _parse_entry(table: dict[str, object], subject: str) -> CatalogEntry:
    try:
        return CatalogEntry.model_validate(table)
    except ValidationError as error:
        _, found, expected = first_error(error, CatalogEntry)
        remedy = "A catalog only lists: to use a source, add it to a pins file."
        raise PinError(subject, found, expected, remedy) from None
