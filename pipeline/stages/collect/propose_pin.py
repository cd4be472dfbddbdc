"""Proposals: entries for a pins file with the digest found now, for a person to review and commit."""

from dataclasses import dataclass
from pathlib import Path

from pipeline.core.errors import PinError
from pipeline.pins.catalog import catalog_entry
from pipeline.pins.pins import SourcePin, parse_pin
from pipeline.stages.collect.kinds.sdist import PutBlob, propose_release
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.stages.collect.params import RetryPolicy


def propose_cataloged(
    name: str, version: str | None, declared_license: str | None, partial: Path, put_blob: PutBlob
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the pin of a cataloged source, found in pip's package index, and notes for its reviewer.

    `declared_license` overrides the one found.
    """
    from pipeline.stages.collect.network.package_index import PackageIndex, pip_configuration

    index = PackageIndex(pip_configuration(), RetryPolicy())
    entry, notes = propose_release(catalog_entry(name), version, index, partial, put_blob)
    return entry | ({} if declared_license is None else {"declared_license": declared_license}), notes


def propose_local(name: str, path: Path, declared_license: str) -> dict[str, str]:
    """Return the pin of a file or folder on this machine; the kind registered last that recognizes it is used."""
    shared = {"name": name, "kind": _AnyKind().name, "declared_license": declared_license}
    parse_pin(shared, f"pin {name}", path.parent, [_AnyKind()])  # before a large folder is read for its digest
    for kind in reversed(tuple(SOURCE_KINDS)):
        fields = kind.fields_of(path)
        if fields is not None:
            entry = {"name": name, "kind": kind.name, **fields, "declared_license": declared_license}
            parse_pin(entry, f"pin {name}", path.parent, SOURCE_KINDS)
            return entry
    raise PinError(f"pin {name}", f"no source kind recognizes {path}", f"one of {', '.join(SOURCE_KINDS.names)}")


@dataclass(frozen=True)
class _AnyKind:
    """The fields that the pins of all kinds share."""

    name: str = "any"
    pin: type[SourcePin] = SourcePin
