"""From something known to a pin: the entry of a pins file with the digest that was seen, for a person to review and commit."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version
from unearth import Package

from pipeline.collect.archives.blocks import file_blocks
from pipeline.collect.archives.unpack import Contents, unpack
from pipeline.collect.network.package_index import PackageIndex, link_sha256, pip_configuration
from pipeline.collect.network.retry import Patience
from pipeline.collect.params import CollectParams
from pipeline.core.digests import file_sha256
from pipeline.core.errors import FetchError, PinError
from pipeline.core.languages import is_source
from pipeline.pins.catalog import CATALOG, CatalogEntry, load_catalog
from pipeline.pins.local_tree import tree_digest
from pipeline.pins.pins import pin_of, toml_of
from pipeline.pins.selection import Selection

_ARCHIVES = (".tar.gz", ".tar.bz2", ".tar.xz", ".zip")
_TAKEN = "Review it, put it into operational.toml, and take the source out of catalog.toml."


@dataclass(frozen=True)
class Proposal:
    """An entry that a person may commit, by field, and what that person should know first."""

    entry: dict[str, Any]
    notes: tuple[str, ...] = ()

    def as_toml(self) -> str:
        """The entry as it is to be pasted."""
        return toml_of(self.entry)


@dataclass(frozen=True)
class Shelf:
    """Where the bytes that were looked at are put: the store's blobs, and the place for one that is arriving."""

    arriving: Path
    put_blob: Callable[[Iterable[bytes], str, str], Path]


def cataloged(name: str, catalog: Path = CATALOG) -> CatalogEntry:
    """The source of that name. Raises PinError naming those that are listed."""
    entries = load_catalog(catalog)
    for entry in entries:
        if entry.name == name:
            return entry
    names = ", ".join(entry.name for entry in entries)
    remedy = "List it there first, or pin a folder or a file of your own with `pin NAME PATH`."
    raise PinError(f"{catalog.name}: {name}", "is not listed", f"one of {names}", remedy)


def propose_cataloged(name: str, version: str | None, declared_license: str | None, shelf: Shelf) -> Proposal:
    """A pin of a cataloged source through the index that pip is configured with; a license that is given stands."""
    entry = cataloged(name)
    proposal = propose_release(entry, version, PackageIndex(pip_configuration(), Patience()), shelf)
    if declared_license is None:
        return proposal
    return replace(proposal, entry={**proposal.entry, "declared_license": declared_license})


def propose_release(entry: CatalogEntry, version: str | None, index: PackageIndex, shelf: Shelf) -> Proposal:
    """A pin of a release of a cataloged source, the newest stable one unless a version is given.

    The archive is fetched into the store, its digest taken from its bytes and compared with its link's, and its contents
    judged as a build would. Raises FetchError, DigestError, ArchiveError.
    """
    package = _chosen(entry, version, index.sdists(entry.name))
    shelf.arriving.unlink(missing_ok=True)
    expected = link_sha256(package.link)
    index.download(package.link, shelf.arriving, expected or "")
    try:
        sha256 = expected or file_sha256(shelf.arriving)
        archive = shelf.put_blob(file_blocks(shelf.arriving), sha256, entry.name)
    finally:
        shelf.arriving.unlink(missing_ok=True)
    contents = unpack(archive, Selection(), CollectParams(), entry.name)
    declared = _declared_license(contents)
    fields = {
        "name": entry.name,
        "kind": "sdist",
        "project": entry.name,
        "version": package.version,
        "file_name": package.link.filename,
        "sha256": sha256,
        "declared_license": declared or entry.license,
    }
    return Proposal(fields, tuple(_notes(entry, contents, declared, expected)))


def propose_own(name: str, path: Path, declared_license: str) -> Proposal:
    """A pin of a folder, an archive or a file of JSON lines on this machine, with the digest that it has now."""
    fields = {"name": name, "kind": "local", "path": str(path)}
    if path.is_file():
        fields["kind"] = "jsonl" if path.suffix == ".jsonl" else "archive"
        fields["sha256"] = file_sha256(path)
    else:
        fields["digest"] = tree_digest(path)
    entry = {**fields, "declared_license": declared_license}
    pin_of(entry, f"pin {name}", path.parent)
    return Proposal(entry)


def _chosen(entry: CatalogEntry, version: str | None, packages: Iterable[Package]) -> Package:
    usable = [package for package in packages if package.link.filename.endswith(_ARCHIVES)]
    stable = [package for package in usable if version == package.version or (version is None and _is_stable(package))]
    if stable:
        newest = max(map(_order, stable))
        ours = [package for package in stable if _order(package) == newest]
        return min(ours, key=lambda package: _ARCHIVES.index(_suffix(package)))
    versions = dict.fromkeys(package.version or "" for package in sorted(usable, key=_order, reverse=True))
    offered = ", ".join(list(versions)[:10]) or "none"
    wanted = f"version {version}" if version else "a stable release"
    remedy = "Name one of them with `--version`, or check `python -m pip config list`."
    raise FetchError(
        entry.name, f"the index offers no source distribution of {wanted}", f"one; it has {offered}", remedy
    )


def _is_stable(package: Package) -> bool:
    return _order(package) > Version("0") and not _order(package).is_prerelease


def _order(package: Package) -> Version:
    """The version as it compares; one that makes no sense comes before all others."""
    try:
        return Version(package.version or "0")
    except InvalidVersion:
        return Version("0")


def _suffix(package: Package) -> str:
    return next(suffix for suffix in _ARCHIVES if package.link.filename.endswith(suffix))


def _declared_license(contents: Contents) -> str:
    """What the package's own metadata says in License-Expression; free text in License is nothing to rely on."""
    metadata = next((file.content for file in contents.files if file.path == "PKG-INFO"), b"")
    return str(BytesHeaderParser().parsebytes(metadata).get("License-Expression", "")).strip()


def _notes(entry: CatalogEntry, contents: Contents, declared: str, link_digest: str | None) -> Iterable[str]:
    sizes = [len(file.content) for file in contents.files if is_source(file.path)]
    yield f"{len(sizes)} C/C++ files, {sum(sizes) / 1e6:.2f} MB. {entry.note}".strip()
    if not declared:
        yield f"Its metadata has no License-Expression; {entry.license or 'nothing'} is what the catalog says."
    if link_digest is None:
        yield "The index gave no digest: the one here is of the bytes that came. Compare it with another index."
    yield _TAKEN
