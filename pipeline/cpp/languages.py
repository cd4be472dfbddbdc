"""Which file is what, by its name alone: C and C++ source, or evidence about its license."""

from pathlib import PurePosixPath
from typing import Literal

Language = Literal["c", "c_or_cpp", "cpp"]
"""By extension: `.c`, `.h` (either of the two), and all that is C++."""

C_EXTENSIONS = frozenset({".c"})
CPP_EXTENSIONS = frozenset(
    [
        ".cc",
        ".cp",
        ".cpp",
        ".cxx",
        ".c++",
        ".hh",
        ".hpp",
        ".hxx",
        ".h++",
        ".inl",
        ".ipp",
        ".tcc",
        ".tpp",
        ".cu",
        ".cuh",
        ".ixx",
        ".cppm",
    ]
)
SHARED_EXTENSIONS = frozenset({".h"})
SOURCE_EXTENSIONS = C_EXTENSIONS | CPP_EXTENSIONS | SHARED_EXTENSIONS

LICENSE_STEMS = frozenset({"license", "licence", "copying", "unlicense", "notice"})
METADATA_NAMES = frozenset({"PKG-INFO", "REUSE.toml", ".reuse/dep5"})


def is_source(path: str) -> bool:
    """Whether the path is C or C++ by its extension, in any case (`.C` is C++ by long custom)."""
    return PurePosixPath(path).suffix.lower() in SOURCE_EXTENSIONS


def is_license_evidence(path: str) -> bool:
    """Whether the path holds evidence about licenses: a license text, a `.license` sidecar, REUSE or package metadata."""
    pure = PurePosixPath(path)
    if pure.name in METADATA_NAMES or path.endswith(".reuse/dep5") or pure.suffix == ".license":
        return True
    if pure.parent.name == "LICENSES":
        return True
    stem = pure.name.lower().split(".")[0].split("-")[0].split("_")[0]
    return stem in LICENSE_STEMS and pure.suffix.lower() in {"", ".txt", ".md", ".rst"}
