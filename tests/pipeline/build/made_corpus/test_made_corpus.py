"""The made corpus against what `made_corpus.toml` says of it, file by file."""

import tomllib
from pathlib import Path

from pipeline.build.recipes import TINY, pins_of
from pipeline.build.run_stage import StageResult
from pipeline.lexing.languages import is_source
from pipeline.store.store import Store
from tests.support.paths import MADE_CORPUS

CORPUS = MADE_CORPUS.parent
EXPECTED = {
    (source, path): entry["fate"]
    for source, entries in tomllib.loads(Path(__file__).with_name("made_corpus.toml").read_text()).items()
    for path, entry in entries.items()
}


def test_every_source_file_is_listed_once() -> None:
    sources = [pin.name for pin in pins_of(TINY)]
    found = {
        (source, path.relative_to(CORPUS / source).as_posix())
        for source in sources
        for path in (CORPUS / source).rglob("*")
        if is_source(path.name)
    }

    assert found == set(EXPECTED)


def test_every_file_has_the_expected_fate(tiny_results: list[StageResult], tiny_store: Store) -> None:
    normalize = next(result for result in tiny_results if result.stage == "normalize")
    fates: dict[tuple[str, str], str] = {}
    for name, object_id in normalize.parts.items():
        if name == "duplicates":
            continue
        part = tiny_store.read(object_id)
        for row in part.table("documents.parquet", ["source", "path"]).to_pylist():
            fates[row["source"], row["path"]] = "kept"
        for row in part.table("dropped.parquet", ["source", "path", "reason"]).to_pylist():
            fates[row["source"], row["path"]] = row["reason"]
    duplicates = tiny_store.read(normalize.parts["duplicates"]).table("duplicates.parquet")
    for row in duplicates.to_pylist():
        fates[row["source"], row["path"]] = row["reason"]

    assert fates == EXPECTED
