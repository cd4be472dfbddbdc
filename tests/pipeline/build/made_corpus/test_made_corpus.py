"""The made corpus against what `made_corpus.toml` says of it, file by file."""

import subprocess
import tomllib
from pathlib import Path

from pipeline.build.recipes import TINY, pins_of
from pipeline.build.run_stage import StageResult
from pipeline.lexing.languages import is_source
from pipeline.store.store import Store
from tests.support.paths import MADE_CORPUS

CORPUS = MADE_CORPUS.parent
EXPECTED = {
    (source, path): entry["outcome"]
    for source, entries in tomllib.loads(Path(__file__).with_name("made_corpus.toml").read_text()).items()
    for path, entry in entries.items()
}


def test_every_source_file_is_listed_once() -> None:
    sources = [pin.name for pin in pins_of(TINY) if pin.kind == "local"]
    found = {
        (source, path.relative_to(CORPUS / source).as_posix())
        for source in sources
        for path in (CORPUS / source).rglob("*")
        if is_source(path.name)
    }

    assert found == {(source, path) for source, path in EXPECTED if source in sources}


def test_every_file_has_the_expected_outcome(tiny_results: list[StageResult], tiny_store: Store) -> None:
    collect, normalize = tiny_results[:2]
    dropped = tiny_store.read(collect.parts["loom"]).table("dropped.parquet").to_pylist()
    outcomes = {("loom", row["path"]): row["reason"] for row in dropped if is_source(row["path"])}
    for name, object_id in normalize.parts.items():
        if name == "duplicates":
            continue
        part = tiny_store.read(object_id)
        for row in part.table("documents.parquet", ["source", "path"]).to_pylist():
            outcomes[row["source"], row["path"]] = "kept"
        for row in part.table("dropped.parquet", ["source", "path", "reason"]).to_pylist():
            outcomes[row["source"], row["path"]] = row["reason"]
    duplicates = tiny_store.read(normalize.parts["duplicates"]).table("duplicates.parquet")
    for row in duplicates.to_pylist():
        outcomes[row["source"], row["path"]] = row["reason"]

    assert outcomes == EXPECTED


def test_the_bundle_holds_the_commits_that_are_written_beside_the_list(tmp_path: Path) -> None:
    pin = next(pin for pin in pins_of(TINY) if pin.name == "loom")
    stream = Path(__file__).with_name("loom.fast-import").read_bytes()
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "--quiet", "--bare", "--initial-branch=main"], check=True)
    subprocess.run([*git, "fast-import", "--quiet"], input=stream, check=True)
    heads = subprocess.run([*git, "rev-parse", "main"], capture_output=True, text=True, check=True).stdout.split()
    bundle = subprocess.run([*git, "bundle", "list-heads", pin.path], capture_output=True, text=True, check=True).stdout

    assert heads == [pin.revision]
    assert bundle.split() == [pin.revision, "refs/heads/main"]
