"""The rows of a file hold all of its tokens; a file that was dropped is refused with what dropped it."""

import pytest

from pipeline.core.errors import MissingError
from pipeline.core.table_names import DROPPED, TOKENS
from pipeline.lineage.origins.rows_of_file import rows_of_file
from pipeline.lineage.stored_build import stored_build
from pipeline.store.store import Store


@pytest.mark.parametrize("source", ["heron", "lantern"])
def test_the_rows_of_a_file_hold_all_of_its_tokens(tiny_store: Store, source: str) -> None:
    build = stored_build(tiny_store, "tiny")
    for document in build.part("tokenize", source).table(TOKENS).to_pylist()[:5]:
        (found,) = rows_of_file(build, source, document["path"]).snapshots

        assert (found.document_id, found.split) == (document["document_id"], document["split"])
        assert [row.piece for row in found.rows] == list(range(len(found.rows)))
        assert sum(row.num_tokens for row in found.rows) == len(document["input_ids"])
        assert found.runs == ()


def test_a_dropped_file_is_refused_with_what_dropped_it(tiny_store: Store) -> None:
    build = stored_build(tiny_store, "tiny")
    dropped = build.part("normalize", "odds").table(DROPPED).to_pylist()[0]

    with pytest.raises(MissingError, match=f"normalize dropped it: {dropped['reason']}.*pipeline why odds"):
        rows_of_file(build, "odds", dropped["path"])
