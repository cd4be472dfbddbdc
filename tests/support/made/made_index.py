"""Made archive of a package index, its pin, and the client of a local index that serves it."""

from typing import TYPE_CHECKING

from pipeline.stages.collect.kinds.sdist import SdistPin
from pipeline.stages.collect.network.package_index import IndexConfiguration, PackageIndex
from pipeline.stages.collect.params import RetryPolicy

if TYPE_CHECKING:
    from tests.pipeline.stages.collect.conftest import Index

ARCHIVE = bytes(range(256)) * 400
FILE_NAME = "demo_pkg-1.0.tar.gz"


def pin(sha256: str, file_name: str = FILE_NAME) -> SdistPin:
    return SdistPin(name="demo", project="Demo.Pkg", version="1.0", file_name=file_name, sha256=sha256)


def package_index(index: "Index", retry: RetryPolicy) -> PackageIndex:
    return PackageIndex(IndexConfiguration(index_urls=(f"{index.address}/simple",)), retry)
