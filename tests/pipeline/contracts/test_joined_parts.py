"""A source in shards: what it becomes as one part, what a changed file changes, and how its rows are read as a whole."""

import gzip
import shutil
from pathlib import Path

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY, CorpusParams, pins_of
from pipeline.build.run_stage import run_stages
from pipeline.build.stage_objects import parts_of
from pipeline.core.digests import file_sha256
from pipeline.core.records import Split
from pipeline.core.table_names import DOCUMENTS, DROPPED, ENRICHED, FILES, PACKED, TOKENS
from pipeline.lineage.stored_build import stored_build
from pipeline.lineage.why import why
from pipeline.pins.local_tree import tree_digest
from pipeline.stages.collect.kinds.archive import ArchivePin
from pipeline.stages.collect.params import CollectParams
from pipeline.store.objects import StoredObject
from pipeline.store.refs import LAST
from pipeline.store.store import Store
from tests.support.made.made_archives import entry, tar_bytes

SOURCE = "odds"
STAGES_OF_SOURCE = ("collect", "normalize", "enrich", "tokenize", "verify")


def _part(store: Store, stage: str, corpus: str = "tiny") -> StoredObject:
    return store.read(parts_of(stored_build(store, corpus, LAST).stage(stage))[SOURCE])


def _cleaned(root: Path, params: CorpusParams, folder: Path) -> Store:
    """Collect and clean that source alone, from a folder."""
    pin = next(pin for pin in pins_of(TINY) if pin.name == SOURCE)
    pins = (pin.model_copy(update={"path": folder, "digest": tree_digest(folder)}),)
    with open_build(BuildRequest("one", params, pins, "a test", 1), Store(root)) as build:
        list(run_stages(build, "normalize"))
    return Store(root)


@pytest.fixture(scope="module")
def folder() -> Path:
    """The folder of the source."""
    return next(Path(str(pin.path)) for pin in pins_of(TINY) if pin.name == SOURCE)  # type: ignore[attr-defined]  # local pins


def test_each_stage_has_the_same_shards_and_reads_them_as_one(tiny_store: Store) -> None:
    parts = {stage: _part(tiny_store, stage) for stage in STAGES_OF_SOURCE}
    names = {stage: [shard.identity["name"] for shard in part.shards] for stage, part in parts.items()}

    assert len(set(names["collect"])) == 2
    assert all(each == names["collect"] for each in names.values())
    assert all(name.startswith(f"{SOURCE}.") for name in names["collect"])
    paths = parts["collect"].table(FILES, ["path"])["path"].to_pylist()
    assert (
        paths
        == sorted(paths)
        == [row["path"] for shard in parts["collect"].shards for row in shard.table(FILES).to_pylist()]
    )


def test_rows_of_shards_have_no_revision_and_those_of_their_source_have_it(tiny_store: Store) -> None:
    part = _part(tiny_store, "normalize")
    (shard, *_) = part.shards

    assert set(part.table(DOCUMENTS, ["revision"])["revision"].to_pylist()) == {part.identity["revision"]}
    assert set(tiny_store.read(shard.object_id).table(DOCUMENTS)["revision"].to_pylist()) == {""}
    found = why(tiny_store, "tiny", SOURCE, part.table(DOCUMENTS, ["path"])["path"][0].as_py())
    assert found.steps[0].evidence["revision"] == part.identity["revision"]


def test_rows_are_called_by_their_number_in_the_source(tiny_store: Store) -> None:
    part = _part(tiny_store, "tokenize")
    last = part.shards[-1].table(PACKED[Split.TRAIN]).to_pylist()[-1]
    place = {row["document_id"]: row["path"] for row in part.table(TOKENS, ["document_id", "path"]).to_pylist()}
    steps = why(tiny_store, "tiny", SOURCE, place[last["source_doc_ids"][-1]]).steps
    (rows,) = [step.evidence["rows"] for step in steps if "rows" in step.evidence]

    assert rows[-1] == f"train/{part.table(PACKED[Split.TRAIN]).num_rows - 1}"


def test_a_source_in_one_part_becomes_the_same_documents(tiny_store: Store, tmp_path: Path, folder: Path) -> None:
    sizes = dict.fromkeys(("min_shard_bytes", "max_shard_bytes"), 10**6)
    whole = TINY.params.model_copy(update={"collect": TINY.params.collect.model_copy(update=sizes)})
    alone, joined = _part(_cleaned(tmp_path, whole, folder), "normalize", "one"), _part(tiny_store, "normalize")

    assert not alone.is_joined
    assert alone.has(DOCUMENTS)
    assert joined.has(DOCUMENTS)
    for table in (DOCUMENTS, DROPPED):
        assert alone.table(table).to_pylist() == joined.table(table).to_pylist()
    assert _counts(alone) == _counts(joined)


def test_a_changed_file_makes_its_own_shard_anew(tiny_store: Store, tmp_path: Path, folder: Path) -> None:
    shutil.copytree(folder, tmp_path / "changed")
    changed = _part(tiny_store, "enrich").shards[-1].table(ENRICHED, ["path"])["path"].to_pylist()[-1]
    with (tmp_path / "changed" / changed).open("a", encoding="utf-8") as file:
        file.write("\nint one_more(void);\n")
    store = _cleaned(tmp_path / "store", TINY.params, tmp_path / "changed")

    for stage in ("collect", "normalize"):
        before = [shard.object_id for shard in _part(tiny_store, stage).shards]
        after = [shard.object_id for shard in _part(store, stage, "one").shards]
        assert before[:-1] == after[:-1]
        assert before[-1] != after[-1]


def test_an_archive_that_expands_further_than_most_has_shards_too(tmp_path: Path) -> None:
    archive = tmp_path / "demo.tgz"
    members = [entry(f"demo/file{number:02}.cpp", b"int the_same_line;\n" * 200) for number in range(20)]
    archive.write_bytes(gzip.compress(tar_bytes(*members)))
    pin = ArchivePin(name="demo", path=archive, sha256=file_sha256(archive), declared_license="MIT")
    sizes = {"min_shard_bytes": 20_000, "max_shard_bytes": 30_000}
    params = CorpusParams(collect=CollectParams(**sizes))
    found = []
    for _ in range(2):
        with open_build(BuildRequest("one", params, (pin,), "a test", 1), Store(tmp_path / "store")) as build:
            (result,) = run_stages(build, "collect")
        found.append(result)
    stored = Store(tmp_path / "store").read(found[0].parts["demo"])

    assert archive.stat().st_size * 5 < sizes["min_shard_bytes"]
    assert [shard.table(FILES).num_rows for shard in stored.shards][:2] == [7, 7]
    assert stored.table(FILES).num_rows == 20
    assert [result.unchanged for result in found] == [False, True]


def _counts(part: StoredObject) -> dict[str, object]:
    found: dict[str, object] = part.json("report.json")
    return found
