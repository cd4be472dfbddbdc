"""The collect stage: from pins to parts, its counts, its cached archives, and failures by source."""

import hashlib
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from pipeline.core.errors import ArchiveError, DigestError, FetchError, SourceError
from pipeline.core.records import DroppedRecord, SourceFile
from pipeline.core.schema import check_table
from pipeline.lexing.languages import CPP, LANGUAGES, Language
from pipeline.stages.collect.kinds.archive import ArchivePin
from pipeline.stages.collect.kinds.git import GitPin
from pipeline.stages.collect.kinds.sdist import SdistPin
from pipeline.stages.collect.params import RetryPolicy
from pipeline.stages.collect.stage import run
from tests.pipeline.stages.collect.conftest import Create, Index
from tests.pipeline.stages.collect.kinds.test_local import local_pin, rows

Pack = Callable[[Mapping[str, bytes]], bytes]

FILES = {
    "demo-1.0/src/b.cpp": b"int b;\n",
    "demo-1.0/a.h": b"int a();\n",
    "demo-1.0/LICENSE": b"MIT License\n",
    "demo-1.0/setup.py": b"raise SystemExit('executed')\n",
}


def archive_pin(folder: Path, content: bytes, name: str = "demo", declared_license: str = "MIT") -> ArchivePin:
    path = folder / f"{name}.tar.gz"
    path.write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    return ArchivePin(name=name, path=path, sha256=sha256, declared_license=declared_license)


def test_an_sdist_goes_from_the_index_through_the_store_into_a_part(
    surroundings: Create, index: "Index", tar_gz: Pack, retry: RetryPolicy
) -> None:
    sha256 = index.add("demo-1.0.tar.gz", tar_gz(FILES))
    pin = SdistPin(name="demo", project="demo", version="1.0", file_name="demo-1.0.tar.gz", sha256=sha256)
    context = surroundings(pin)
    output = run(context, retry)
    assert output.failures == {}
    assert output.parts == {"demo": "id-of-demo"}
    assert context.blob(sha256) is not None
    assert not context.partial_blob(sha256).exists()
    assert [row["path"] for row in rows(context, "demo", "files.parquet")] == ["LICENSE", "a.h", "src/b.cpp"]


def test_a_second_build_requests_no_index(
    surroundings: Create, index: "Index", tar_gz: Pack, retry: RetryPolicy
) -> None:
    sha256 = index.add("demo-1.0.tar.gz", tar_gz(FILES))
    pin = SdistPin(name="demo", project="demo", version="1.0", file_name="demo-1.0.tar.gz", sha256=sha256)
    run(surroundings(pin), retry)
    index.requests.clear()
    assert run(surroundings(pin, offline=True), retry).failures == {}
    assert index.requests == []


def test_another_language_makes_every_part_again(surroundings: Create, tar_gz: Pack, tmp_path: Path) -> None:
    context = surroundings(archive_pin(tmp_path, tar_gz(FILES)))
    run(context)
    with LANGUAGES.registered(Language("python", frozenset({".py"}), CPP.grammar)):
        run(context)

    assert [row["path"] for row in rows(context, "demo", "files.parquet")] == [
        "LICENSE",
        "a.h",
        "setup.py",
        "src/b.cpp",
    ]


def test_files_carry_identities_that_outsiders_can_check(surroundings: Create, tar_gz: Pack, tmp_path: Path) -> None:
    pin = archive_pin(tmp_path, tar_gz(FILES))
    context = surroundings(pin)
    run(context)
    check_table(context.made["demo"].tables["files.parquet"], SourceFile, "files")
    check_table(context.made["demo"].tables["dropped.parquet"], DroppedRecord, "dropped")
    by_path = {row["path"]: row for row in rows(context, "demo", "files.parquet")}
    row = by_path["src/b.cpp"]
    git = subprocess.run(["git", "hash-object", "--stdin"], input=b"int b;\n", capture_output=True, check=True)
    assert row["git_blob_id"] == git.stdout.decode().strip()
    assert row["blob_sha256"] == hashlib.sha256(b"int b;\n").hexdigest()
    assert (row["source"], row["revision"], row["num_bytes"]) == ("demo", pin.sha256, 7)
    assert {path: row["is_evidence"] for path, row in by_path.items()} == {
        "LICENSE": True,
        "a.h": False,
        "src/b.cpp": False,
    }


def test_what_is_left_out_is_written_down_and_counted(surroundings: Create, tar_gz: Pack, tmp_path: Path) -> None:
    context = surroundings(archive_pin(tmp_path, tar_gz(FILES)))
    report = run(context).report
    (drop,) = rows(context, "demo", "dropped.parquet")
    assert (drop["path"], drop["reason"], drop["num_bytes"], drop["license"]) == (
        "setup.py",
        "other_language",
        29,
        None,
    )
    assert (report.rows_in, report.rows_out, dict(report.dropped)) == (4, 3, {"other_language": 1})
    assert (report.num_bytes_in, report.num_bytes_out) == (57, 28)
    assert report.measures == {
        "num_evidence_files": 1,
        "num_failed_sources": 0,
        "num_pins_without_license_metadata": 0,
        "num_source_files": 2,
        "num_sources": 1,
        "source_bytes": 16,
    }


def test_failures_are_reported_by_source_and_the_others_continue(
    surroundings: Create, tar_gz: Pack, tmp_path: Path
) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.cpp").write_bytes(b"int a;")
    html = b"<html>no such page</html>"
    context = surroundings(
        archive_pin(tmp_path, html, "page"),
        archive_pin(tmp_path, tar_gz(FILES), declared_license=""),
        ArchivePin(name="absent", path=tmp_path / "none.tar", sha256="0" * 64),
        GitPin(name="repository", url="file:///nowhere", commit="b" * 40),
        local_pin(root, digest="0" * 64),
    )
    output = run(context)
    kinds = {name: type(error) for name, error in output.failures.items()}
    assert kinds == {"page": ArchiveError, "absent": SourceError, "repository": FetchError, "tree": DigestError}
    assert set(output.parts) == {"demo"}
    assert "file:///nowhere could not be fetched" in str(output.failures["repository"])
    assert "none.tar is not a file" in str(output.failures["absent"])
    assert "<html>no such pa" in str(output.failures["page"])
    assert output.report.measures["num_failed_sources"] == 4
    assert output.report.measures["num_pins_without_license_metadata"] == 4
    assert output.report.measures["num_sources"] == 5


def test_an_offline_build_names_every_archive_that_is_missing(surroundings: Create, retry: RetryPolicy) -> None:
    pins = [
        SdistPin(name=name, project=name, version="1.0", file_name=f"{name}-1.0.tar.gz", sha256=digit * 64)
        for name, digit in (("one", "1"), ("two", "2"))
    ]
    output = run(surroundings(*pins, offline=True), retry)
    assert {name: type(error) for name, error in output.failures.items()} == {"one": FetchError, "two": FetchError}
    assert f"two-1.0.tar.gz (sha256 {'2' * 64}) is not in the store" in str(output.failures["two"])
    assert "Build once with the network" in str(output.failures["two"])


def test_other_bytes_than_the_pinned_ones_are_kept_aside_and_not_used(
    surroundings: Create, index: "Index", tar_gz: Pack, retry: RetryPolicy
) -> None:
    index.add("demo-1.0.tar.gz", tar_gz(FILES), link_digest="")
    pin = SdistPin(name="demo", project="demo", version="1.0", file_name="demo-1.0.tar.gz", sha256="0" * 64)
    context = surroundings(pin)
    output = run(context, retry)
    assert isinstance(output.failures["demo"], DigestError)
    assert output.parts == {}
    assert (context.folder / f"{'0' * 64}.aside").exists()
    assert not context.partial_blob("0" * 64).exists()


def test_an_archive_comes_from_a_url_too(
    surroundings: Create, index: "Index", tar_gz: Pack, retry: RetryPolicy
) -> None:
    sha256 = index.add("x.tgz", tar_gz(FILES))
    output = run(surroundings(ArchivePin(name="demo", url=f"{index.address}/files/x.tgz", sha256=sha256)), retry)
    assert output.failures == {}
    assert output.report.rows_out == 3


def test_the_order_of_members_does_not_move_the_output(surroundings: Create, tar_gz: Pack, tmp_path: Path) -> None:
    outputs = []
    for number, names in enumerate((sorted(FILES), sorted(FILES, reverse=True))):
        pin = archive_pin(tmp_path, tar_gz({name: FILES[name] for name in names}), f"demo{number}")
        context = surroundings(pin)
        run(context)
        outputs.append(context.made[pin.name].tables["files.parquet"].drop_columns(["source", "revision"]))
    assert outputs[0].equals(outputs[1])
