"""The bytes that `which` names are those of the file as it lies in its source; a slot without such bytes is refused in words."""

from pathlib import Path

import pytest

from pipeline.build.recipes import RECIPES, pins_of
from pipeline.core.records import Split
from pipeline.core.table_names import DOCUMENTS, FILES
from pipeline.lineage.origins.token_places import RowsOfSource, row_name
from pipeline.lineage.origins.which import TokenOrigin, TokenOrigins
from pipeline.lineage.stored_build import StoredBuild, stored_build
from pipeline.store.snapshot import open_snapshot
from pipeline.store.store import Store
from tests.support.made.drawn_tokens import TokenOracle, drawn_tokens

NUM_TOKENS = 400


@pytest.fixture(scope="module")
def build(tiny_store: Store) -> StoredBuild:
    return stored_build(tiny_store, "tiny")


@pytest.fixture(scope="module")
def oracle(build: StoredBuild) -> TokenOracle:
    folders = {pin.name: Path(getattr(pin, "path")) for pin in pins_of(RECIPES["tiny"])}  # noqa: B009  # all have one
    collected = build.part("collect", "loom").table(FILES, ["path", "content"]).to_pylist()
    of_commits = {row["path"]: row["content"] for row in collected}

    def content(source: str, path: str) -> bytes:
        return (folders[source] / path).read_bytes() if folders[source].is_dir() else of_commits[path]

    def text(source: str, document_id: str) -> str:
        table = build.part("normalize", source).table(DOCUMENTS, ["document_id", "text"]).to_pylist()
        return next(row["text"] for row in table if row["document_id"] == document_id)

    snapshot = open_snapshot(build.store, build.snapshot_id or "")
    return TokenOracle(snapshot, content, text)


def _origin(build: StoredBuild, row: str, slot: int) -> TokenOrigin:
    return TokenOrigins(build).of(row_name(row), slot)


def test_the_bytes_of_drawn_tokens_read_as_the_tokens(build: StoredBuild, oracle: TokenOracle) -> None:
    origins = TokenOrigins(build)
    found = [origins.of(*place) for place in drawn_tokens(oracle.snapshot, NUM_TOKENS, seed=21)]

    assert [flaw for flaw in map(oracle.flaw, found) if flaw] == []
    assert len({origin.document["document_id"] for origin in found}) > 20
    assert {origin.document["split"] for origin in found} == set(Split)


def test_every_token_of_every_changed_document_reads_as_its_bytes(build: StoredBuild, oracle: TokenOracle) -> None:
    """Of byte order marks, encodings, line ends and placeholders: each token of each such document."""
    origins = TokenOrigins(build)
    edits, changes = set[str](), set[str]()
    for source in ("odds", "quarry"):
        rows = build.part("normalize", source).table(DOCUMENTS).to_pylist()
        for row in (row for row in rows if row["edits"] or row["num_redactions"]):
            packed = RowsOfSource(build, source, Split(row["split"]))
            edits.update(row["edits"])
            for piece in packed.pieces(row["document_id"]):
                for slot in range(piece.first_slot + 1, piece.first_slot + 1 + piece.num_tokens):
                    origin = origins.of(piece.row, slot)
                    changes.update(origin.changed)
                    assert oracle.flaw(origin) is None, origin
    assert {"bom_removed", "crlf_to_lf", "cr_to_lf", "decoded_from_cp1252"} <= edits
    assert {"decoded", "line_end", "placeholder"} <= changes


def test_an_origin_names_license_lane_archive_and_rules(build: StoredBuild) -> None:
    origin = _origin(build, "lantern/train/3", 17)
    rows = build.part("normalize", "lantern").table(DOCUMENTS).to_pylist()
    document = next(row for row in rows if row["document_id"] == origin.document["document_id"])

    assert origin.license["expression"] == document["license"]
    assert origin.license["detail"] == document["license_detail"]
    assert origin.archive["kind"] == "local"
    assert origin.archive["member"] == document["path"]
    assert origin.lane["provenance"] == "syntax_only"
    rules = {rule["rule"]: rule for rule in origin.rules}
    assert rules["no better copy"]["step"] == "duplicates"
    assert rules["too_large"]["measured"] == document["num_bytes"] <= rules["too_large"]["max_num_bytes"]
    assert origin.withdrawn == ()
