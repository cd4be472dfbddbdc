"""Tools of the compiler index, all from packages with a version: nothing of the machine's own compiler is read.

`libclang` parses. `ziglang` brings what libclang lacks: clang's own headers of the same major version, libc++ and glibc's
headers, the same bytes on every machine; and a compiler for the checks of cmake. `cmake` and `ninja` make
databases. A package that is not installed is recorded as absent: it is part of what the output depends on.
"""

import importlib.util
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PARSING = ("libclang", "ziglang")
CONFIGURING = ("cmake", "ninja")
ABSENT = "absent"
GLIBC_MINOR = 36

_HEADERS = (
    "include",
    "libc/include/x86_64-linux-gnu",
    "libc/include/generic-glibc",
    "libc/include/x86-linux-any",
    "libc/include/any-linux-any",
)
_LIBCXX = (
    "_LIBCPP_ABI_VERSION=1",
    "_LIBCPP_ABI_NAMESPACE=__1",
    "_LIBCPP_HAS_NO_VENDOR_AVAILABILITY_ANNOTATIONS",
    "_LIBCPP_DISABLE_VISIBILITY_ANNOTATIONS",
    "_LIBCXXABI_DISABLE_VISIBILITY_ANNOTATIONS",
    "_LIBCPP_PSTL_CPU_BACKEND_SERIAL",
    "_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_NONE",
)


class ToolFailedError(Exception):
    """Failure of a tool that the compiler index needs. Its arguments are the kind of failure, one word, and a message."""


def tool_versions(cmake: bool) -> dict[str, str]:
    """Return the versions of the packages that compile a source, `absent` for those that are not installed."""
    versions = {}
    for name in (*PARSING, *(CONFIGURING if cmake else ())):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = ABSENT
    return versions


def missing_tools(versions: Mapping[str, str]) -> list[str]:
    """Return the packages that are not installed, sorted."""
    return sorted(name for name, found in versions.items() if found == ABSENT)


def toolchain_folder() -> Path:
    """Return the folder of the package `ziglang`."""
    return package_folder("ziglang")


def package_folder(name: str) -> Path:
    """Return the folder of an installed package, found without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(name)
    return Path(spec.submodule_search_locations[0])


def system_arguments(is_c: bool) -> list[str]:
    """Return the options that make libclang read the headers of the package and none of the machine."""
    folders = _HEADERS if is_c else ("libcxx/include", "libcxxabi/include", *_HEADERS)
    return [
        *("--target=x86_64-linux-gnu", "-nostdinc", f"-D__GLIBC_MINOR__={GLIBC_MINOR}"),
        *(() if is_c else ("-nostdinc++", *(f"-D{name}" for name in _LIBCXX))),
        *(word for folder in folders for word in ("-isystem", str(toolchain_folder() / "lib" / folder))),
    ]
