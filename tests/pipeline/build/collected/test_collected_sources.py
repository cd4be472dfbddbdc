"""Collected sources agree with their own digests, their report, their pin, and their archive where the store has it."""

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.collected.collected_sources import refuse_contradictions
from pipeline.build.recipes import TINY
from pipeline.build.run_stage import run_stages
from pipeline.build.stage_objects import evidence_of, parts_of
from pipeline.core.errors import SnapshotError
from pipeline.core.table_names import DROPPED, FILES, LISTED
from pipeline.formats.tables import SHARD_LABEL, read_table
from pipeline.pins.pins import load_pins
from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS
from pipeline.store.objects import StoredObject
from pipeline.store.store import Store
from pipeline.store.store_layout import MANIFEST
from tests.support.made.made_archives import entry, tar_bytes
from tests.support.made.made_to_fit import Edit, edit_json, set_value, without_row

Collected = tuple[StoredObject, Mapping[str, Mapping[str, Any]]]
NAMES = ("a.cpp", "b.cpp", "c.cpp", "d e.cpp", "d%20e.cpp", "%41.cpp", "of_another_language.py")


@pytest.fixture
def collected(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Collected:
    """The stage collect of one archive, as another process has stored it, and its pin; a parameter is the size of its shards."""
    monkeypatch.setattr("pipeline.build.collected.collected_sources.was_made_here", lambda object_id: False)
    with tarfile.open(tmp_path / "code.tar.gz", "w:gz") as archive:
        for name in NAMES:
            content = f"int {name[0]}{len(name)};\n".encode()
            member = tarfile.TarInfo(f"code/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    digest = hashlib.sha256((tmp_path / "code.tar.gz").read_bytes()).hexdigest()
    (tmp_path / "pins.toml").write_text(
        f'[[pin]]\nname = "code"\nkind = "archive"\npath = "code.tar.gz"\nsha256 = "{digest}"\ndeclared_license = "MIT"\n'
    )
    pins = load_pins(tmp_path / "pins.toml", SOURCE_KINDS)
    sizes = dict.fromkeys(("min_shard_bytes", "max_shard_bytes"), getattr(request, "param", 1024**3))
    params = TINY.params.model_copy(update={"collect": TINY.params.collect.model_copy(update=sizes)})
    with open_build(BuildRequest("mine", params, pins, "a test"), store) as build:
        stage_id = next(run_stages(build, "collect")).object_id
    return store.read(stage_id), {"code": pins[0].identity()}


def without_first_file(folder: Path) -> None:
    """Take the first file out of the table, and out of the counts of the report."""
    num_bytes = read_table([folder / FILES])["num_bytes"][0].as_py()
    without_row()(folder / FILES)
    changed = {"rows_in": -1, "rows_out": -1, "num_bytes_in": -num_bytes, "num_bytes_out": -num_bytes}
    measures = {"num_source_files": -1, "source_bytes": -num_bytes}

    def fewer(report: dict[str, Any]) -> dict[str, Any]:
        counts = {name: report["measures"][name] + by for name, by in measures.items()}
        return (
            report
            | {name: report[name] + by for name, by in changed.items()}
            | {"measures": report["measures"] | counts}
        )

    edit_json(fewer)(folder / "report.json")


EDITS: dict[str, tuple[Edit, str]] = {
    "content": (
        lambda folder: set_value("content", lambda text: text + b"\n")(folder / FILES),
        "has digests of another",
    ),
    **{
        column: (
            lambda folder, column=column: set_value(column, lambda _: "other")(folder / DROPPED),
            "names another record",
        )
        for column in ("source", "record_id", "license", "text_sha256")
    },
    "a drop": (lambda folder: edit_json(lambda report: report | {"rows_in": 9})(folder / "report.json"), "report"),
    "a file": (without_first_file, "other than its archive's"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_source_that_contradicts_its_digests_its_report_or_its_archive_is_refused(
    store: Store, tmp_path: Path, collected: Collected, name: str
) -> None:
    stage, pins = collected
    edit, message = EDITS[name]
    refuse_contradictions(store, stage, pins)
    part = store.read(parts_of(stage)["code"])
    for stored, folder in ((part, tmp_path / "part"), (stage, tmp_path / "stage")):
        shutil.copytree(stored.path, folder, ignore=shutil.ignore_patterns(MANIFEST))
    edit(tmp_path / "part")
    part_id = store.commit(tmp_path / "part", part.manifest.kind, part.manifest.identity, {})
    stage_id = store.commit(tmp_path / "stage", stage.manifest.kind, stage.manifest.identity, {"part/code": part_id})

    with pytest.raises(SnapshotError, match=message):
        refuse_contradictions(store, store.read(stage_id), pins)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_value("content", lambda text: text + b"\n"), "has digests of another"),
        (set_value("path", lambda path: "0.cpp"), "its files.parquet are other than its archive's"),
        (without_row(), "its report is not that of its tables"),
    ],
)
@pytest.mark.parametrize("collected", [16], indirect=True)
def test_a_shard_that_contradicts_its_digests_its_report_or_the_archive_is_refused(
    store: Store, tmp_path: Path, collected: Collected, change: Callable[[Path], None], message: str
) -> None:
    stage, pins = collected
    refuse_contradictions(store, stage, pins)
    joined = store.read(parts_of(stage)["code"])
    label = min(label for label in joined.manifest.inputs if label.startswith(SHARD_LABEL))
    objects = {"shard": store.read(joined.manifest.inputs[label]), "joined": joined, "stage": stage}
    for name, stored in objects.items():
        shutil.copytree(stored.path, tmp_path / name, ignore=shutil.ignore_patterns(MANIFEST))
    change(tmp_path / "shard" / FILES)
    inputs: dict[str, str] = {}
    for name, place in (("shard", label), ("joined", "part/code"), ("stage", "")):
        manifest = objects[name].manifest
        made = store.commit(tmp_path / name, manifest.kind, manifest.identity, {**manifest.inputs, **inputs})
        inputs = {place: made}

    with pytest.raises(SnapshotError, match=message):
        refuse_contradictions(store, store.read(made), pins)


ONLY_SECOND: dict[str, Callable[[Any], Any]] = {
    "member": lambda member: member.replace("code/", "other/"),
    "other_path": lambda _: "line 3",
    "is_optional": lambda _: True,
    "member ": lambda _: None,
}
"""Forged fields of the second row of a listing."""


@pytest.mark.parametrize("name", ONLY_SECOND)
def test_a_listing_whose_name_of_one_file_is_forged_is_refused_without_the_archive(
    store: Store, tmp_path: Path, collected: Collected, name: str
) -> None:
    stage, pins = collected
    listing = store.read(evidence_of(stage)["code.listing"])
    for stored, folder in ((listing, tmp_path / "listing"), (stage, tmp_path / "stage")):
        shutil.copytree(stored.path, folder, ignore=shutil.ignore_patterns(MANIFEST))
    set_value(name.strip(), ONLY_SECOND[name], 1)(tmp_path / "listing" / LISTED)
    listing_id = store.commit(tmp_path / "listing", listing.kind, listing.identity, listing.manifest.inputs)
    inputs = {**stage.manifest.inputs, "evidence/code.listing": listing_id}
    stage_id = store.commit(tmp_path / "stage", stage.kind, stage.identity, inputs)
    (store.root / "blobs" / pins["code"]["revision"]).unlink()

    with pytest.raises(SnapshotError, match="its entry of"):
        refuse_contradictions(store, store.read(stage_id), pins)


@pytest.mark.parametrize("has_archive", [True, False])
@pytest.mark.parametrize("name", ["num_bytes", "git_blob_id", "source", "member"])
def test_a_listing_that_contradicts_its_archive_or_what_was_read_is_refused(
    store: Store, tmp_path: Path, collected: Collected, name: str, has_archive: bool
) -> None:
    stage, pins = collected
    listing = store.read(evidence_of(stage)["code.listing"])
    for stored, folder in ((listing, tmp_path / "listing"), (stage, tmp_path / "stage")):
        shutil.copytree(stored.path, folder, ignore=shutil.ignore_patterns(MANIFEST))
    set_value(name, lambda value: value + 1 if isinstance(value, int) else "0" * len(value))(
        tmp_path / "listing" / LISTED
    )
    of_listing, of_stage = listing.manifest, stage.manifest
    listing_id = store.commit(tmp_path / "listing", of_listing.kind, of_listing.identity, of_listing.inputs)
    inputs = {**of_stage.inputs, "evidence/code.listing": listing_id}
    stage_id = store.commit(tmp_path / "stage", of_stage.kind, of_stage.identity, inputs)
    if not has_archive:
        (store.root / "blobs" / pins["code"]["revision"]).unlink()

    with pytest.raises(SnapshotError, match="other than its archive's" if has_archive else "its entry of"):
        refuse_contradictions(store, store.read(stage_id), pins)


def collected_by(store: Store, file: Path, more: str) -> Collected:
    """Return the stage collect of a file, as another process has stored it, and its pin of these fields besides."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    entry_of_pin = f'name = "code"\npath = "{file.name}"\nsha256 = "{digest}"\ndeclared_license = "MIT"\n{more}'
    (file.parent / "pins.toml").write_text(f"[[pin]]\n{entry_of_pin}")
    pins = load_pins(file.parent / "pins.toml", SOURCE_KINDS)
    with open_build(BuildRequest("mine", TINY.params, pins, "a test"), store) as build:
        return store.read(next(run_stages(build, "collect")).object_id), {"code": pins[0].identity()}


def _refuse_with_and_without_archive(store: Store, stage: StoredObject, pins: Mapping[str, Mapping[str, Any]]) -> None:
    refuse_contradictions(store, stage, pins)
    (store.root / "blobs" / pins["code"]["revision"]).unlink()
    refuse_contradictions(store, stage, pins)


def test_an_excluded_path_that_is_twice_in_an_archive_contradicts_nothing(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.build.collected.collected_sources.was_made_here", lambda object_id: False)
    members = [
        entry("top/a.c", b"int a;\n"),
        entry("top/t/x.c", b"1"),
        entry("top/./t/x.c", b"22"),
        entry("top/x.py", b"3"),
    ]
    (tmp_path / "code.tar").write_bytes(tar_bytes(*members))
    _refuse_with_and_without_archive(
        store, *collected_by(store, tmp_path / "code.tar", 'kind = "archive"\nexclude = ["t/**"]\n')
    )


def test_lines_of_json_with_one_path_and_their_licenses_contradict_nothing(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.build.collected.collected_sources.was_made_here", lambda object_id: False)
    texts = (3, "int a0;\n", "int a1;\n", None)
    lines = [{"path": "a.c", "license": "MIT"} | ({} if text is None else {"text": text}) for text in texts]
    (tmp_path / "code.jsonl").write_text("\n".join(map(json.dumps, lines)))
    stage, pins = collected_by(store, tmp_path / "code.jsonl", 'kind = "jsonl"\nlicense_field = "license"\n')

    assert store.read(parts_of(stage)["code"]).table(FILES)["path"].to_pylist() == ["a.c", "a.c.license"]
    _refuse_with_and_without_archive(store, stage, pins)


@pytest.mark.parametrize("by", [1, -1])
@pytest.mark.parametrize("name", ["rows_out", "num_bytes_in", "num_source_files"])
def test_a_stage_whose_report_is_not_the_sum_of_its_parts_is_refused(
    store: Store, tmp_path: Path, collected: Collected, name: str, by: int
) -> None:
    stage, pins = collected
    shutil.copytree(stage.path, tmp_path / "stage", ignore=shutil.ignore_patterns(MANIFEST))

    def change(report: dict[str, Any]) -> dict[str, Any]:
        counts = report if name in report else report["measures"]
        counts[name] += by
        return report

    edit_json(change)(tmp_path / "stage" / "report.json")
    stage_id = store.commit(tmp_path / "stage", stage.manifest.kind, stage.manifest.identity, stage.manifest.inputs)

    with pytest.raises(SnapshotError, match=f"its report has other {name}"):
        refuse_contradictions(store, store.read(stage_id), pins)


def test_a_source_of_another_pin_is_refused(store: Store, collected: Collected) -> None:
    stage, pins = collected
    with pytest.raises(SnapshotError, match="declared_license are not those of pin code"):
        refuse_contradictions(store, stage, {"code": {**pins["code"], "declared_license": "Zlib"}})


def test_what_this_process_has_just_made_is_not_read_again(
    store: Store, collected: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.build.collected.collected_sources.was_made_here", lambda object_id: True)
    monkeypatch.setattr(StoredObject, "table", lambda *_: pytest.fail("it is read"))
    refuse_contradictions(store, *collected)
