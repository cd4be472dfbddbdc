"""The source kind `sdist`: a source distribution in the package index that pip is configured with."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from pipeline.core.digests import file_sha256
from pipeline.lexing.languages import is_source
from pipeline.pins.catalog import CatalogEntry
from pipeline.pins.pins import Sha256, SourcePin
from pipeline.stages.collect.contents import ReadOptions, SourceContents
from pipeline.stages.collect.kinds.archive import list_members, read_archive
from pipeline.stages.collect.kinds.source_kind import Fetcher, Origin, SourceKind, file_blocks

if TYPE_CHECKING:
    from unearth import Package

    from pipeline.stages.collect.network.package_index import PackageIndex

PutBlob = Callable[[Iterable[bytes], str, str], Path]
"""The function of a store that keeps bytes as a blob, as in `StageContext.put_blob`."""


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


def _origin(pin: Mapping[str, Any]) -> Origin:
    normalized = re.sub(r"[-_.]+", "-", pin["project"]).lower()
    text = f"{pin['project']} {pin['version']} ({pin['file_name']})"
    return Origin(text, purl=f"pkg:pypi/{normalized}@{pin['version']}")


def _newest(pin: SdistPin, fetcher: Fetcher) -> dict[str, str]:
    """Return the fields of the newest stable release, and its license where its metadata names another. Raises FetchError."""
    from packaging.version import InvalidVersion, Version

    package = fetcher.index.release(pin.project, None)
    try:
        is_newer = Version(str(package.version)) > Version(pin.version)
    except InvalidVersion:
        is_newer = str(package.version) != pin.version
    if not is_newer:
        return {}
    partial = fetcher.context.partial_blob(f"pin-{pin.name}")
    sha256, archive = _arrived(package, fetcher.index, partial, fetcher.context.put_blob, pin.name)
    from pipeline.stages.collect.archives.unpack import unpack

    declared = _declared_license(unpack(archive, ReadOptions(pin.name)))
    found = {"version": str(package.version), "file_name": package.link.filename, "sha256": sha256}
    return found | ({"declared_license": declared} if declared and declared != pin.declared_license else {})


KIND = SourceKind(SdistPin, _fetch, read_archive, origin=_origin, listing=list_members, newest=_newest)


def propose_release(
    entry: CatalogEntry, version: str | None, index: "PackageIndex", partial: Path, put_blob: PutBlob
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the pin of a release of a cataloged source, by default the newest stable one, and notes for its reviewer.

    The archive is downloaded to `partial`, compared with its link's digest, stored, and read as in a build.
    Raises FetchError, DigestError, ArchiveError.
    """
    from pipeline.stages.collect.archives.unpack import unpack
    from pipeline.stages.collect.network.package_index import link_sha256

    package = index.release(entry.name, version)
    sha256, archive = _arrived(package, index, partial, put_blob, entry.name)
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
    return fields, tuple(_notes(entry, contents, declared, link_sha256(package.link)))


def _arrived(
    package: "Package", index: "PackageIndex", partial: Path, put_blob: PutBlob, name: str
) -> tuple[str, Path]:
    """Download a release to `partial` and store it; return its digest, that of its link if it has one, and the blob."""
    from pipeline.stages.collect.network.package_index import link_sha256

    partial.unlink(missing_ok=True)
    expected = link_sha256(package.link)
    index.download(package.link, partial, expected or "")
    try:
        sha256 = expected or file_sha256(partial)
        return sha256, put_blob(file_blocks(partial), sha256, name)
    finally:
        partial.unlink(missing_ok=True)


def _declared_license(contents: SourceContents) -> str:
    # Only License-Expression counts: License is free text.
    from email.parser import BytesHeaderParser

    metadata = next((file.content for file in contents.files if file.path == "PKG-INFO"), b"")
    return str(BytesHeaderParser().parsebytes(metadata).get("License-Expression", "")).strip()


def _notes(entry: CatalogEntry, contents: SourceContents, declared: str, link_digest: str | None) -> Iterable[str]:
    sizes = [len(file.content) for file in contents.files if is_source(file.path)]
    yield f"{len(sizes)} source files, {sum(sizes) / 1e6:.2f} MB. {entry.note}".strip()
    if not declared:
        yield f"Its metadata has no License-Expression; the catalog says {entry.license or 'nothing'}."
    if link_digest is None:
        yield "The index gave no digest: this one is of the bytes that arrived. Compare it with another index."
    yield "Review it, add it to operational.toml, and remove the source from catalog.toml."
