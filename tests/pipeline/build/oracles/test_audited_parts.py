"""Parts as an audit reads them: a joined one as its shards, each under a name of its own."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from pipeline.build.oracles.audited_parts import evidence_beside, labeled, source_of_name


def _part(name: str, *shards: Any) -> Any:
    return SimpleNamespace(identity={"name": name}, is_joined=bool(shards), shards=shards or ())


def test_a_joined_part_is_read_as_its_shards() -> None:
    one, first, second = _part("one"), _part("two.aa"), _part("two.bb")
    inputs = {"before/one": one, "before/rows/two": _part("two", first, second), "after/one": _part("one")}

    assert labeled(inputs, "before/") == {"one": one, "rows/two.aa": first, "rows/two.bb": second}


def test_the_source_of_a_shard_and_of_its_rows_is_its_first_name() -> None:
    assert [source_of_name(name) for name in ("one", "one.aa", "rows/one", "rows/one.aa")] == ["one"] * 4


def test_evidence_beside_shards_is_that_of_their_source() -> None:
    evidence = SimpleNamespace(table=lambda *_: pa.table({"path": ["LICENSE"], "content": [b"a"]}))

    assert evidence_beside({"one.evidence": evidence}, "one.aa") == {"LICENSE": b"a"}  # type: ignore[dict-item]  # a table alone
    assert evidence_beside({"one.evidence": evidence}, "two.aa") == {}  # type: ignore[dict-item]  # a table alone
