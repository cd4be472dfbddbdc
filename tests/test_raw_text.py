"""Text of sources stays in blobs and in what collect stores: everything else that is stored or printed is scrubbed.

A corpus holds a secret, an e-mail address and a home folder in each place where text comes in. Every file of the store is decoded
and searched for them, and so is what every command prints.
"""

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from pipeline.build.build import BuildRequest, open_build
from pipeline.build.recipes import TINY, with_items
from pipeline.build.run_stage import run_stages
from pipeline.cli.main import main
from pipeline.contracts.withheld_paths import is_withheld
from pipeline.export.export import EXPORT_FORMATS, export
from pipeline.pins.held_out import HeldOut
from pipeline.stages.tokenize.vocabulary import load_vocabulary
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from tests.conftest import known_answers
from tests.support.planted_corpus import Planted, planted_pins, write_items

RAW = ("blobs", "rejected", "objects/collect", "units")
"""Folders that may hold text as it came: bytes that pins name, what collect read of them, and the compiler's cache."""
CORPUS = "planted"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def planted() -> Planted:
    return Planted()


@pytest.fixture(scope="module")
def built(planted: Planted, tiny_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The store in which the planted corpus was built."""
    root = tmp_path_factory.mktemp("planted")
    (root / "sources").mkdir()
    write_items(root / "items", planted)
    request = BuildRequest(
        CORPUS, with_items(TINY.params, root / "items"), planted_pins(root / "sources", planted), "a test"
    )
    request = BuildRequest(
        CORPUS, request.params.model_copy(update={"held_out": HeldOut(sources=("lines",))}), request.pins, "a test"
    )
    store = Store(root / "store")
    with known_answers(tiny_store), open_build(request, store) as build:
        *_, last = run_stages(build)
    last.refuse_blocked(CORPUS)
    return store


def test_every_value_came_in(built: Store, planted: Planted) -> None:
    found = set[str]()
    for path in sorted((built.root / "objects/collect").rglob("*")):
        for _, content in _contents(path):
            found |= planted.places_in(content)
    blobs = b"".join(path.read_bytes() for path in sorted((built.root / "blobs").rglob("*")) if path.is_file())
    found |= planted.places_in(blobs)
    expected = {f"secret of {place}" for place in planted.secrets} | {f"mail of {place}" for place in planted.mails}
    compressed = {"mail of committer", "mail of subject", "secret of subject"}
    assert expected - found <= compressed | {"secret of item", "mail of item"}


def test_no_stored_file_after_collect_holds_a_value(built: Store, planted: Planted) -> None:
    found: dict[str, set[str]] = defaultdict(set)
    num_files = 0
    for path in sorted(built.root.rglob("*")):
        place = path.relative_to(built.root).as_posix()
        if not path.is_file() or place.startswith(RAW):
            continue
        num_files += 1
        for column, content in _contents(path):
            found[f"{place}: {column}"] |= planted.places_in(content)
    assert not (lines := _lines(found)), "\n".join(lines)
    assert num_files > 50


def test_a_name_that_is_a_secret_is_in_no_document(built: Store, planted: Planted) -> None:
    rows = [row for path in sorted(built.root.glob("objects/normalize/rules/*/dropped.parquet")) for row in _rows(path)]
    withheld = [row for row in rows if is_withheld(row["path"])]
    assert withheld
    assert {row["reason"] for row in withheld} == {"unscrubbable"}


@pytest.mark.parametrize("form", EXPORT_FORMATS.names)
def test_no_export_holds_a_value(form: str, built: Store, planted: Planted, tmp_path: Path) -> None:
    snapshot_id = built.ref(CORPUS, "candidate")
    assert snapshot_id is not None
    export(open_snapshot(built, snapshot_id), form, tmp_path / "out")
    files = [path for path in sorted((tmp_path / "out").rglob("*")) if path.is_file()]
    found = {f"{path.name}: {column}": planted.places_in(text) for path in files for column, text in _contents(path)}
    assert not (lines := _lines(found)), "\n".join(lines)
    assert len(files) > 3


def _lines(found: Mapping[str, set[str]]) -> list[str]:
    return [f"{place}: {', '.join(sorted(values))}" for place, values in sorted(found.items()) if values]


def _rows(path: Path) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = pq.read_table(path).to_pylist()
    return rows


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the text of each column of a table, tokens as text, or the bytes of another file."""
    if path.suffix not in (".parquet", ".arrow"):
        yield "", path.read_bytes() if path.is_file() else b""
        return
    table = pq.read_table(path) if path.suffix == ".parquet" else ipc.open_file(pa.memory_map(str(path))).read_all()
    vocabulary = load_vocabulary("tiny-1024")
    for name in table.column_names:
        values = table[name].to_pylist()
        if name == "input_ids" and "document_id" in table.column_names:
            yield name, b"\n".join(map(vocabulary.decode_bytes, values))
        else:
            yield name, "\n".join(map(str, values)).encode() + b"\n".join(v for v in values if isinstance(v, bytes))


def _commands(store: Store) -> Iterator[list[str]]:
    """Every command that reads a corpus, with every file of it."""
    yield ["report", "--corpus", CORPUS]
    yield ["show", "--corpus", CORPUS]
    yield ["fsck"]
    yield ["gates", "--corpus", CORPUS]
    yield ["diff", "candidate", "candidate", "--corpus", CORPUS]
    yield from (
        ["card", "--snapshot", "candidate", "--corpus", CORPUS, "--as", form]
        for form in ("markdown", "croissant", "spdx")
    )
    for part in sorted(store.root.glob("objects/collect/part/*")):
        for table in ("files.parquet", "dropped.parquet"):
            for row in _rows(part / table):
                yield ["why", row["source"], row["path"], "--corpus", CORPUS]
                yield ["show", row["source"], row["path"], "--structure", "--corpus", CORPUS]
    for path in sorted(store.root.glob("objects/normalize/rules/*/dropped.parquet")):
        yield from (
            ["why", row["source"], row["path"], "--corpus", CORPUS] for row in _rows(path) if is_withheld(row["path"])
        )


@pytest.mark.parametrize("as_json", [True, False])
def test_no_command_prints_a_value(
    as_json: bool, built: Store, planted: Planted, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shutil.copytree(built.root, tmp_path / "store")
    found: dict[str, set[str]] = {}
    for command in _commands(built):
        code = main([*command, "--store", str(tmp_path / "store"), *(["--json"] if as_json else [])])
        assert code == 0 or command[0] == "show", command  # a file that was dropped has no structure
        printed = capsys.readouterr()
        asked = planted.places_in(" ".join(command).encode())
        found[" ".join(command)] = planted.places_in((printed.out + printed.err).encode()) - asked
        assert as_json is False or not printed.out or json.loads(printed.out) is not None
    if not as_json:
        page = (tmp_path / "store" / "reports" / f"{CORPUS}.html").read_bytes()
        found["page"] = planted.places_in(page)
    assert not (lines := _lines(found)), "\n".join(lines)
