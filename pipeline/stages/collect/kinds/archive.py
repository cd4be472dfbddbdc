"""The source kind `archive`: a tar or zip archive at a URL or a path."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pipeline.contracts.part import PartJob
from pipeline.core.digests import file_sha256
from pipeline.pins.pins import FilePin
from pipeline.stages.collect.contents import ReadOptions, SourceContents
from pipeline.stages.collect.kinds.source_kind import SourceKind, newest_file
from pipeline.stages.collect.listing import ListedName, list_archive


class ArchivePin(FilePin):
    """A tar or zip archive at a URL or, relative to the pins file, at a path."""

    kind: Literal["archive"] = "archive"


def read_archive(job: PartJob, path: Path, options: ReadOptions) -> SourceContents:
    """Read the members of an archive."""
    from pipeline.stages.collect.archives.unpack import unpack

    return unpack(path, options)


def list_members(pin: Mapping[str, Any], path: Path, num_bytes: int) -> Iterable[ListedName]:
    """List the members of an archive."""
    return list_archive(path, num_bytes)


def _propose(path: Path) -> dict[str, str] | None:
    return {"path": str(path), "sha256": file_sha256(path)} if path.is_file() else None


KIND = SourceKind(
    ArchivePin,
    lambda pin, fetcher: fetcher.file(pin, "an archive"),
    read_archive,
    _propose,
    listing=list_members,
    newest=newest_file,
)
