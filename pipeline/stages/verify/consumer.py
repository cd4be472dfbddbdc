"""Identity of the consumer, the trainer that runs on every candidate: its code, the code that it imports, and its libraries.

It is part of what proves the consumer, never of the snapshot. The trainer is found and read, not imported.
"""

import re
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from platform import python_implementation, python_version
from typing import Any

from pipeline.core.digests import known_sha256
from pipeline.core.errors import MissingError
from pipeline.core.params import digest

CONSUMER = "trainer"
CONSUMER_FIELD = "consumer"
"""Field of the identity of a part that the consumer proves."""
CONSUMER_PARTS = ("smoke", "loader")
"""Part functions that run the trainer on the candidate, each in processes of its own. Their parts have their names."""
_DISTRIBUTIONS = {"re2": "google-re2"}
"""Distributions of another name than their module. A test compares them with what is installed."""
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([\w., \t]+))", re.MULTILINE)


def consumer_root() -> Path:
    """Return the folder that holds the package of the consumer. Raises MissingError where it is not installed."""
    spec = find_spec(CONSUMER)
    if spec is None or spec.origin is None:
        raise MissingError(
            f"consumer {CONSUMER}", "it is not installed", "", "Install the project: `pip install -e .`."
        )
    return Path(spec.origin).parents[1]


def consumer_identity(root: Path | None = None) -> dict[str, Any]:
    """Return the digest of the consumer's code, and the versions of Python and of the libraries that it imports."""
    root = consumer_root() if root is None else root
    code = consumer_code(root)
    names = {name.partition(".")[0] for path, sha256 in code.items() for name in _imported(root / path, sha256)}
    versions = {name: _version(name) for name in sorted(names) if not _rooms(root, name)}
    return {
        "code": digest(code),
        "python": f"{python_implementation()} {python_version()}",
        "libraries": {name: found for name, found in versions.items() if found is not None},
    }


def consumer_code(root: Path) -> dict[str, str]:
    """Return the digest of each file of the trainer and of the folders of ours that it imports, by path below `root`."""
    digests: dict[str, str] = {}
    waiting, rooms = [CONSUMER], {CONSUMER}
    while waiting:
        for path in _files(root, waiting.pop()):
            digests[path.relative_to(root).as_posix()] = sha256 = known_sha256(path)
            found = {room for name in _imported(path, sha256) for room in _rooms(root, name)}
            waiting += sorted(found - rooms)
            rooms |= found
    return dict(sorted(digests.items()))


@cache
def _rooms(root: Path, module: str) -> list[str]:
    """Return the folders of ours that importing a module runs: a package whole, or of the pipeline its room."""
    package, _, rest = module.partition(".")
    if not (root / package / "__init__.py").is_file():
        return []
    if package != "pipeline":
        return [package]
    room = f"{package}/{rest.partition('.')[0]}"
    return [f"{package}/__init__.py", *([room] if rest and (root / room).is_dir() else [])]


def _files(root: Path, room: str) -> list[Path]:
    """Return the files of a folder, whose data counts too, or a file itself, sorted."""
    paths = [root / room] if (root / room).is_file() else sorted((root / room).rglob("*"))
    return [
        path
        for path in paths
        if path.is_file()
        and "__pycache__" not in path.parts
        and not path.name.startswith(".")
        and path.suffix != ".pyc"
    ]


@cache
def _imported(path: Path, sha256: str) -> tuple[str, ...]:
    """Return the names of the modules that a file of that digest imports, at any depth of its code."""
    if path.suffix != ".py":
        return ()
    names: set[str] = set()
    for from_name, import_names in _IMPORT.findall(path.read_bytes()):
        for text in [from_name] if from_name else import_names.split(b","):
            names.update(text.decode("ascii", "replace").split()[:1])
    return tuple(sorted(names))


@cache
def _version(name: str) -> str | None:
    """Return the version of the distribution of a top-level module, or None for the standard library and what is absent."""
    if name in sys.stdlib_module_names or not name:
        return None
    try:
        return version(_DISTRIBUTIONS.get(name, name))
    except (PackageNotFoundError, ValueError):
        return None
