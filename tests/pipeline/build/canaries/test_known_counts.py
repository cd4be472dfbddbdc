"""A count over equal tables is made once, whatever objects hold them; any other value is counted again."""

import pyarrow as pa
import pytest

from pipeline.build.canaries.known_counts import KnownCounts
from pipeline.contracts.part import PartJob
from pipeline.core.params import Params


def test_a_count_is_made_again_for_other_tables_alone() -> None:
    seen: list[int] = []

    def count(table: pa.Table, limit: int) -> int:
        seen.append(limit)
        return sum(value > limit for value in table["value"].to_pylist())

    counts = KnownCounts()
    sound, other = pa.table({"value": [1, 5]}), pa.table({"value": [4, 5]})
    in_chunks = pa.concat_tables([sound.slice(0, 1), sound.slice(1)])

    assert [counts.count(count, table, 3) for table in (sound, in_chunks, other, sound)] == [1, 1, 2, 1]
    assert len(seen) == 2
    assert counts.count(count, sound, 0) == 2
    assert counts.count(len, sound) == 2


@pytest.mark.parametrize("other", [[1, None], [1], [1, 5, 5]])
def test_a_null_a_missing_and_an_added_value_are_other_tables(other: list[int | None]) -> None:
    counts = KnownCounts()
    counts.count(pa.Table.to_pydict, pa.table({"value": pa.array([1, 5])}))

    assert counts.count(pa.Table.to_pydict, pa.table({"value": pa.array(other, pa.int64())})) == {"value": other}


def test_a_build_knows_no_count() -> None:
    calls: list[str] = []
    job = PartJob("source", Params(), {}, {}, {})

    assert [job.count(calls.append, "same"), job.count(calls.append, "same")] == [None, None]
    assert calls == ["same", "same"]
