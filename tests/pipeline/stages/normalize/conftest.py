"""Small sources, collected and normalized as a build does it, in a store of their own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import CorpusParams
from pipeline.build.run_stage import StageResult, run_stage
from pipeline.pins.decisions import Decision
from pipeline.pins.held_out import HeldOut
from pipeline.pins.local_tree import tree_digest
from pipeline.stages.collect.kinds.local import LocalPin
from pipeline.stages.normalize.params import NormalizeParams
from pipeline.store.store import Store

CODE = "".join(f"int f{n}(int a{n}) {{ return a{n} * {n} + {n}; }}\n" for n in range(40))
UNCLEAR = "// This file must not be used for weather forecasts without a permission of the author.\n" + CODE
"""A file of a license that its package declares, and one whose comment is unclear about it."""
Sources = Mapping[str, Mapping[str, str | bytes]]


@dataclass(frozen=True)
class Normalized:
    """Result of the stage, and the store that holds it."""

    result: StageResult
    store: Store

    def rows(self, part: str, table: str) -> list[dict[str, Any]]:
        """The rows of one table of one part."""
        rows: list[dict[str, Any]] = self.store.read(self.result.parts[part]).table(table).to_pylist()
        return rows

    def outcomes(self) -> dict[str, str]:
        """`source/path` -> `kept` or the drop reason, of every file."""
        found = {}
        for part in sorted(set(self.result.parts) - {"duplicates"}):
            found |= {f"{row['source']}/{row['path']}": "kept" for row in self.rows(part, "documents.parquet")}
            found |= {f"{row['source']}/{row['path']}": row["reason"] for row in self.rows(part, "dropped.parquet")}
        lost = self.rows("duplicates", "duplicates.parquet")
        return found | {f"{row['source']}/{row['path']}": row["reason"] for row in lost}


Normalize = Callable[..., Normalized]


def decision(path: str, **fields: Any) -> Decision:
    """Return a decision of a person about a file of the source `mine`."""
    return Decision(source="mine", path=path, person="A. Reader", reason="The author said so.", **fields)


def normalize_in(
    root: Path,
    sources: Sources,
    params: NormalizeParams | None = None,
    held_out: tuple[str, ...] | HeldOut = (),
    licenses: Mapping[str, str] | None = None,
    pin_fields: Mapping[str, Mapping[str, Any]] | None = None,
    decisions: tuple[Decision, ...] = (),
) -> Normalized:
    """Run collect and normalize over made sources below `root`; called again, it continues in the same store."""
    more = {name: {"declared_license": (licenses or {}).get(name, "MIT")} for name in sources}
    pins = tuple(
        _pin(root / name, files, {**more[name], **(pin_fields or {}).get(name, {})})
        for name, files in sorted(sources.items())
    )
    corpus = CorpusParams(normalize=params or NormalizeParams(), held_out=held_out)
    store = Store(root / "store")
    with open_build(BuildRequest("made", corpus, pins, "a test", decisions=decisions), store) as build:
        collected = run_stage("collect", build, None)
        return Normalized(run_stage("normalize", build, collected.object_id), store)


@pytest.fixture
def normalize(tmp_path: Path) -> Normalize:
    """`normalize_in` a folder of the test's own."""
    return partial(normalize_in, tmp_path)


def _pin(root: Path, files: Mapping[str, str | bytes], fields: Mapping[str, Any]) -> LocalPin:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content.encode() if isinstance(content, str) else content)
    return LocalPin(name=root.name, path=root, digest=tree_digest(root), **fields)
