"""RecipeKind: recipes of one kind as TOML files, each perhaps with another one as its base, read into layers.

base = "quick"              a name, or a file relative to this one; optional

[normalize.filters]
max_num_bytes = 500_000     what differs
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os.path import realpath
from pathlib import Path
from typing import Any

from pipeline.core.errors import ParamsError, did_you_mean
from pipeline.core.registry import Registry
from pipeline.core.settings.overrides import BASE, Overrides
from pipeline.core.toml_text import MAX_TOML_BYTES, read_toml

SUFFIX = ".toml"


@dataclass(frozen=True)
class RecipeKind:
    """A kind of recipe: the folder of those that are shipped, the values of a registered one, and signs of another kind."""

    name: str
    folder: Path
    values: Callable[[Any], Mapping[str, Any]]
    foreign: tuple[str, ...]
    """Fields by which a recipe of another kind is told."""
    taken_by: str
    """The command that takes such a recipe."""

    def shipped(self, name: str) -> tuple[Overrides, ...]:
        """Read the file of a recipe that is shipped, and those that it begins with, the lowest first."""
        return self._read_with_bases(self._file_of(name), None, ())

    def layers(self, given: str, registry: Registry[Any]) -> tuple[Overrides, ...]:
        """Return the layers of a recipe by its name or its file, the lowest first. Raises ParamsError for what is neither."""
        if names_file(given):
            return self._read_with_bases(Path(given), registry, ())
        return (Overrides(f"{self.name} {given}", self.values(registry[given])),)

    def _file_of(self, name: str) -> Path:
        return self.folder / f"{name}{SUFFIX}"

    def _read_with_bases(
        self, path: Path, registry: Registry[Any] | None, above: tuple[Path, ...]
    ) -> tuple[Overrides, ...]:
        place = Path(realpath(path)) if "\0" not in str(path) else path
        if place in above:
            found = f"it includes itself: {' -> '.join(map(str, (*above, place)))}"
            raise ParamsError(f"{self.name} {above[0]}", found, "bases that end", f"Correct `{BASE}` in one of them.")
        values = _read(path, self.name)
        base = values.pop(BASE, None)
        if strange := [name for name in self.foreign if name in values]:
            remedy = f"It is for `{self.taken_by}`: give it to that."
            raise ParamsError(str(path), f"it holds {', '.join(strange)}", f"the fields of a {self.name}", remedy)
        own = Overrides(str(path), values, path.absolute().parent, (BASE,))
        if base is None:
            return (own,)
        return (*self._base(base, path, registry, (*above, place)), own)

    def _base(
        self, base: Any, path: Path, registry: Registry[Any] | None, above: tuple[Path, ...]
    ) -> tuple[Overrides, ...]:
        if isinstance(base, str) and names_file(base):
            return self._read_with_bases(path.absolute().parent / base, registry, above)
        if isinstance(base, str) and self._file_of(base).is_file():
            return self._read_with_bases(self._file_of(base), registry, above)
        if registry is not None and base in registry:
            return (Overrides(f"{self.name} {base}", self.values(registry[base])),)
        names = () if registry is None else registry.names
        remedy = did_you_mean(str(base), names, "Name one of these, or a file.")
        raise ParamsError(f"{path}: {BASE}", f"it is {base!r}", f"one of {', '.join(names)}, or a file", remedy)


def names_file(given: str) -> bool:
    """Return whether the word for a recipe is a path and not a name: it ends in .toml, or holds a slash."""
    return given.endswith(SUFFIX) or "/" in given


def name_of(given: str) -> str:
    """Return the name of a recipe, which is that of its file without the suffix."""
    return Path(given).name.removesuffix(SUFFIX) if names_file(given) else given


def _read(path: Path, kind: str) -> dict[str, Any]:
    wanted = f"the TOML file of a {kind}"
    if path.is_dir():
        raise ParamsError(str(path), "it is a folder", wanted, "Name a file in it.")
    if not path.is_file():  # of a path with a zero byte too
        if "\0" not in str(path) and path.is_symlink():
            found = f"it is a link to {os.readlink(path)}, which leads to no file"
            raise ParamsError(str(path), found, wanted, "Correct the link, or name the file itself.")
        others = [] if "\0" in str(path) else sorted(each.name for each in path.parent.glob(f"*{SUFFIX}"))
        remedy = did_you_mean(path.name, others, "Correct the path, or name one that is shipped.")
        raise ParamsError(str(path), "there is no such file", wanted, remedy)
    try:
        if path.stat().st_size > MAX_TOML_BYTES:  # before it is in memory
            raise ValueError(f"it has more than {MAX_TOML_BYTES} bytes")
        return read_toml(path)
    except UnicodeDecodeError as error:
        raise ParamsError(str(path), f"byte {error.start} is not UTF-8", wanted, "Save it as UTF-8.") from None
    except ValueError as error:
        found = f"it is not TOML ({str(error)[:500]})"
        raise ParamsError(str(path), found, wanted, "Correct the syntax there.") from None
