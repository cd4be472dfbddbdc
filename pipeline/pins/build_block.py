"""The `build` block of a pin: how a compiler would read the source. Without one, no code of a source is ever executed.

    [pin.build]
    database = "build/compile_commands.json"      a compile database in the source

or, to have cmake create one in a sandbox without network:

    [pin.build]
    cmake = true
    folder = "core"                               the folder of CMakeLists.txt
    options = ["-DWITH_TESTS=OFF"]
    max_units = 200                               at most so many units, chosen by a keyed hash
    min_build_aware_fraction = 0.1                a bound on the source's share
"""

import re
from typing import Annotated

from pydantic import Field, model_validator

from pipeline.core.params import Params

TreePath = Annotated[str, Field(max_length=1000)]
_OPTION = re.compile(r"-[DU][A-Za-z_][A-Za-z0-9_.+-]*(:[A-Z]+)?(=[^\x00\n]*)?")


class BuildBlock(Params):
    """A source's compile database, existing or to be created, and the share of the source that it must cover."""

    database: TreePath | None = None
    """Path of a compile database in the source."""
    cmake: bool = Field(default=False, strict=True)
    """Run cmake on the source to create one. That executes code of the source, in a sandbox."""
    folder: TreePath = ""
    """Folder of the source that holds CMakeLists.txt."""
    options: tuple[str, ...] = ()
    """Definitions for cmake, each `-DNAME=VALUE` or `-UNAME`."""
    max_units: int | None = Field(default=None, ge=1, le=100_000, strict=True)
    """Number of units to compile, chosen by a keyed hash of their paths; None means all."""
    min_build_aware_fraction: float = Field(default=0.0, ge=0, le=1)
    """Minimum share of the source's documents that a compiler must have read."""
    max_failed_fraction: float = Field(default=1.0, ge=0, le=1)
    """Maximum share of the source's documents whose unit the compiler may fail on."""

    @model_validator(mode="after")
    def _is_consistent(self) -> "BuildBlock":
        if (self.database is None) == (not self.cmake):
            raise ValueError("either `database` or `cmake = true`, and not both")
        if not self.cmake and (self.folder or self.options):
            raise ValueError("`folder` and `options` only together with `cmake = true`")
        for path in (self.database or "", self.folder):
            if path.startswith("/") or "\\" in path or ".." in path.split("/"):
                raise ValueError(f"{path!r} to be a path inside the source")
        for option in self.options:
            if not _OPTION.fullmatch(option):
                forms = "-DNAME=VALUE or -UNAME; other options of cmake can write or run files"
                raise ValueError(f"{option!r} to be {forms}")
        return self
