"""ProposedPin: an entry for a pins file with the digest found now, for a person to review and commit."""

from dataclasses import dataclass
from pathlib import Path

from pipeline.collect.kinds.sdist import PutBlob, propose_release
from pipeline.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.collect.params import RetryPolicy
from pipeline.core.errors import PinError
from pipeline.pins.catalog import CATALOG, CatalogEntry, load_catalog
from pipeline.pins.pins import parse_pin, pin_toml


@dataclass(frozen=True)
class ProposedPin:
    """An entry by field, and notes to read before committing it."""

    entry: dict[str, str]
    notes: tuple[str, ...] = ()

    def as_toml(self) -> str:
        """Return the entry as text to paste into a pins file."""
        return pin_toml(self.entry)


def catalog_entry(name: str, catalog: Path = CATALOG) -> CatalogEntry:
    """Return the cataloged source of that name. Raises PinError naming those that exist."""
    entries = {entry.name: entry for entry in load_catalog(catalog)}
    if name not in entries:
        remedy = "Add it there first, or pin a folder or a file of your own with `pin NAME PATH`."
        raise PinError(f"{catalog.name}: {name}", "is not listed", f"one of {', '.join(entries)}", remedy)
    return entries[name]


def propose_cataloged(
    name: str, version: str | None, declared_license: str | None, partial: Path, put_blob: PutBlob
) -> ProposedPin:
    """Propose a pin of a cataloged source, found in pip's package index; `declared_license` overrides the one found."""
    from pipeline.collect.network.package_index import PackageIndex, pip_configuration

    index = PackageIndex(pip_configuration(), RetryPolicy())
    fields, notes = propose_release(catalog_entry(name), version, index, partial, put_blob)
    given = {} if declared_license is None else {"declared_license": declared_license}
    return ProposedPin({**fields, **given}, notes)


def propose_local(name: str, path: Path, declared_license: str) -> ProposedPin:
    """Propose a pin of a file or folder on this machine; the kind registered last that recognizes it is used."""
    for kind in reversed(tuple(SOURCE_KINDS)):
        fields = kind.propose(path)
        if fields is not None:
            entry = {"name": name, "kind": kind.name, **fields, "declared_license": declared_license}
            parse_pin(entry, f"pin {name}", path.parent, SOURCE_KINDS)
            return ProposedPin(entry)
    raise PinError(f"pin {name}", f"no source kind recognizes {path}", f"one of {', '.join(SOURCE_KINDS.names)}")
