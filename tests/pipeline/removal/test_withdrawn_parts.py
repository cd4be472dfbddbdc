"""The rows that an erasure would empty are found in each table of a collected source, by name and by digest."""

import pytest

from pipeline.pins.selection import Selector, Selectors
from pipeline.removal.withdrawn_parts import withdrawn_parts
from tests.pipeline.removal.conftest import OWN_SHA256, Collected


@pytest.mark.parametrize(
    ("selector", "paths"),
    [("made/a.c", ("a.c",)), (f"sha256:{OWN_SHA256}", ("a.c",)), ("made", ("LICENSE", "a.c", "b.c")), ("made/z.c", ())],
)
def test_the_withdrawn_files_of_a_source_are_named_and_emptied(
    collected: Collected, selector: str, paths: tuple[str, ...]
) -> None:
    source = collected.store.read(collected.first["made"])
    (found,) = withdrawn_parts(source, [source], Selectors([Selector(selector)]))

    assert found.paths == paths
    for table in found.tables.values():
        left = {row["path"] for row in table.to_pylist() if row["content"]}
        assert left == {"LICENSE", "a.c", "b.c"} - set(paths)
    assert bool(found.tables) == bool(paths)
