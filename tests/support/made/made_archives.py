"""Archives made in memory, and the files or the refusal that reading one gives."""

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.core.errors import ArchiveError
from pipeline.pins.selection import Selection
from pipeline.stages.collect.archives.unpack import unpack
from pipeline.stages.collect.contents import ReadOptions, SourceContents
from pipeline.stages.collect.params import CollectParams

LIMITS = CollectParams()
ALL = Selection()


def entry(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, target: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    """Build a member of a tar file."""
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, len(content), target
    return info, content


def tar_bytes(*entries: tuple[tarfile.TarInfo, bytes], form: int = tarfile.GNU_FORMAT) -> bytes:
    """Build a tar file."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=form, encoding="utf-8", errors="surrogateescape") as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content) if content else None)
    return target.getvalue()


def read(folder: Path, content: bytes, limits: CollectParams = LIMITS, selection: Selection = ALL) -> SourceContents:
    """Read an archive of these bytes."""
    path = folder / "archive"
    path.write_bytes(content)
    return unpack(path, ReadOptions("demo", selection, limits))


def refusal(folder: Path, content: bytes, limits: CollectParams = LIMITS) -> str:
    """Return the message with which these bytes are refused."""
    with pytest.raises(ArchiveError) as caught:
        read(folder, content, limits)
    return str(caught.value)


SMALL = tar_bytes(entry("demo-1.0/b.cpp", b"int b;\n"), entry("demo-1.0/a.h", b"int a();\n"))


def zip_bytes(files: Mapping[str, bytes], modes: Mapping[str, int] | None = None) -> bytes:
    """Build a zip file."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (modes or {}).get(name, 0o100644) << 16
            archive.writestr(info, content)
    return target.getvalue()
