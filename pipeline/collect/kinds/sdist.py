"""The source kind `sdist`: a source distribution in the package index that pip is configured with."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from pipeline.collect.contents import ReadOptions, SourceContents
from pipeline.collect.kinds.archive import read_archive
from pipeline.collect.kinds.source_kind import Fetcher, SourceKind, file_blocks
from pipeline.core.digests import file_sha256
from pipeline.core.errors import FetchError
from pipeline.core.languages import is_source
from pipeline.pins.catalog import CatalogEntry
from pipeline.pins.pins import Sha256, SourcePin

if TYPE_CHECKING:
    from packaging.version import Version
    from unearth import Package

    from pipeline.collect.network.package_index import PackageIndex

_ARCHIVES = (".tar.gz", ".tar.bz2", ".tar.xz", ".zip")


class SdistPin(SourcePin):
    """A source distribution, found by project and file name in the package index."""

    kind: Literal["sdist"] = "sdist"
    project: str = Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
    version: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.!+_-]*$")
    file_name: str = Field(pattern=r"^[^/\\\s]+\.(tar\.gz|tar\.bz2|tar\.xz|zip)$")
    sha256: Sha256

    revision_field: ClassVar[str] = "sha256"


def _fetch(pin: SdistPin, fetcher: Fetcher) -> Path:
    return fetcher.blob(pin, pin.sha256, pin.file_name, lambda partial: fetcher.index.fetch(pin, partial))


KIND = SourceKind(SdistPin, _fetch, read_archive)


@dataclass(frozen=True)
class BlobWriter:
    """Access to a store for one download: the path of the partial file, and the function that stores it as a blob."""

    partial: Path
    put_blob: Callable[[Iterable[bytes], str, str], Path]


def propose_release(
    entry: CatalogEntry, version: str | None, index: "PackageIndex", blobs: BlobWriter
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the pin of a release of a cataloged source, by default the newest stable one, and notes for its reviewer.

    The archive is fetched into the store, its digest computed from its bytes and compared with its link's, and its contents
    checked as in a build. Raises FetchError, DigestError, ArchiveError.
    """
    from pipeline.collect.archives.unpack import unpack
    from pipeline.collect.network.package_index import link_sha256

    package = _choose(entry, version, index.sdists(entry.name))
    blobs.partial.unlink(missing_ok=True)
    expected = link_sha256(package.link)
    index.download(package.link, blobs.partial, expected or "")
    try:
        sha256 = expected or file_sha256(blobs.partial)
        archive = blobs.put_blob(file_blocks(blobs.partial), sha256, entry.name)
    finally:
        blobs.partial.unlink(missing_ok=True)
    contents = unpack(archive, ReadOptions(entry.name))
    declared = _declared_license(contents)
    fields = {
        "name": entry.name,
        "kind": KIND.name,
        "project": entry.name,
        "version": str(package.version),
        "file_name": package.link.filename,
        "sha256": sha256,
        "declared_license": declared or entry.license,
    }
    return fields, tuple(_notes(entry, contents, declared, expected))


def _choose(entry: CatalogEntry, version: str | None, packages: Iterable["Package"]) -> "Package":
    usable = [package for package in packages if package.link.filename.endswith(_ARCHIVES)]
    wanted = [package for package in usable if version == package.version or (version is None and _is_stable(package))]
    if wanted:
        newest = max(map(_version_of, wanted))
        formats = [package for package in wanted if _version_of(package) == newest]
        return min(formats, key=lambda package: _ARCHIVES.index(_suffix(package)))
    versions = dict.fromkeys(package.version or "" for package in sorted(usable, key=_version_of, reverse=True))
    offered = ", ".join(list(versions)[:10]) or "none"
    found = f"the index offers no source distribution of {f'version {version}' if version else 'a stable release'}"
    remedy = "Choose one of them with `--version`, or check `python -m pip config list`."
    raise FetchError(entry.name, found, f"one of the versions there ({offered})", remedy)


def _is_stable(package: "Package") -> bool:
    from packaging.version import Version

    return _version_of(package) > Version("0") and not _version_of(package).is_prerelease


def _version_of(package: "Package") -> "Version":
    """Return the version for comparison; one that cannot be parsed comes before all others."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(package.version or "0")
    except InvalidVersion:
        return Version("0")


def _suffix(package: "Package") -> str:
    return next(suffix for suffix in _ARCHIVES if package.link.filename.endswith(suffix))


def _declared_license(contents: SourceContents) -> str:
    # Only License-Expression counts: License is free text.
    from email.parser import BytesHeaderParser

    metadata = next((file.content for file in contents.files if file.path == "PKG-INFO"), b"")
    return str(BytesHeaderParser().parsebytes(metadata).get("License-Expression", "")).strip()


def _notes(entry: CatalogEntry, contents: SourceContents, declared: str, link_digest: str | None) -> Iterable[str]:
    sizes = [len(file.content) for file in contents.files if is_source(file.path)]
    yield f"{len(sizes)} C/C++ files, {sum(sizes) / 1e6:.2f} MB. {entry.note}".strip()
    if not declared:
        yield f"Its metadata has no License-Expression; the catalog says {entry.license or 'nothing'}."
    if link_digest is None:
        yield "The index gave no digest: this one is of the bytes that arrived. Compare it with another index."
    yield "Review it, add it to operational.toml, and remove the source from catalog.toml."
