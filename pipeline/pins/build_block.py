"""The `build` block of a pin: how a compiler would read the source. Without one, nothing of a source is ever run.

    [pin.build]
    database = "build/compile_commands.json"      a compile database that the source holds

or, where cmake is to make one, in a sandbox without network:

    [pin.build]
    cmake = true
    folder = "core"                               where CMakeLists.txt lies
    options = ["-DWITH_TESTS=OFF"]
    max_units = 200                               that many units by a keyed hash; all unless given
    min_build_aware_fraction = 0.1                the band that the source's shares must keep to
"""

import re
from typing import Annotated

from pydantic import Field, model_validator

from pipeline.core.params import Params

TreePath = Annotated[str, Field(max_length=1000)]
_OPTION = re.compile(r"-[DU][A-Za-z_][A-Za-z0-9_.+-]*(:[A-Z]+)?(=[^\x00\n]*)?")


class BuildBlock(Params):
    """A source's compile database, given or to be made, and what share of the source it must explain."""

    database: TreePath | None = None
    """Path of a compile database in the source."""
    cmake: bool = Field(default=False, strict=True)
    """Whether cmake is run on the source to make one. That executes what the source says, in a sandbox."""
    folder: TreePath = ""
    """Folder of the source that holds CMakeLists.txt."""
    options: tuple[str, ...] = ()
    """Definitions for cmake, each `-DNAME=VALUE` or `-UNAME`."""
    max_units: int | None = Field(default=None, ge=1, le=100_000, strict=True)
    """Units that are compiled, chosen by a keyed hash of their paths; None means all."""
    min_build_aware_fraction: float = Field(default=0.0, ge=0, le=1)
    """Least share of the source's documents that a compiler must have seen."""
    max_failed_fraction: float = Field(default=1.0, ge=0, le=1)
    """Greatest share of the source's documents whose unit the compiler may have failed on."""

    @model_validator(mode="after")
    def _is_sound(self) -> "BuildBlock":
        if (self.database is None) == (not self.cmake):
            raise ValueError("either `database` or `cmake = true`, and not both")
        if not self.cmake and (self.folder or self.options):
            raise ValueError("`folder` and `options` only beside `cmake = true`")
        for path in (self.database or "", self.folder):
            if path.startswith("/") or "\\" in path or ".." in path.split("/"):
                raise ValueError(f"{path!r} to be a path inside the source")
        for option in self.options:
            if not _OPTION.fullmatch(option):
                raise ValueError(
                    f"{option!r} to be -DNAME=VALUE or -UNAME; other options of cmake can write or run files"
                )
        return self
