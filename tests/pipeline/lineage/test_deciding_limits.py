"""Every reason for which a file can be dropped has a limit or a rule, told with its value in the recipe that was built."""

import pytest

from pipeline.core.params import Params
from pipeline.lineage.deciding_limits import deciding_limits
from pipeline.stages.collect.params import CollectParams
from pipeline.stages.normalize.duplicates.duplicates import Reason
from pipeline.stages.normalize.params import DropBands, FilterParams, NormalizeParams

OF_COLLECT = ("other_language", "link", "submodule", "special", "excluded", "too_large", "bad_line", "withdrawn")
PIN = {"include": [], "exclude": ["docs/**"], "path_field": "path", "text_field": "text", "withdrawn": ["zlib/a.c"]}
ROW = {"source": "zlib", "num_bytes": 7, "keeper_source": "zlib"}


@pytest.mark.parametrize(
    ("stage", "reason", "params"),
    [("collect", reason, CollectParams()) for reason in OF_COLLECT]
    + [("normalize", reason, NormalizeParams()) for reason in sorted({*DropBands.model_fields, *map(str, Reason)})],
)
def test_every_reason_has_one(stage: str, reason: str, params: Params) -> None:
    assert deciding_limits(stage, reason, params, PIN, ROW)


def test_values_are_those_of_the_build() -> None:
    params = NormalizeParams(filters=FilterParams(max_num_bytes=1234))
    assert deciding_limits("normalize", "too_large", params, {}, ROW) == "normalize.filters.max_num_bytes is 1234"
    collect = CollectParams(max_file_bytes=5)
    assert deciding_limits("collect", "too_large", collect, PIN, ROW) == "num_bytes is 7, collect.max_file_bytes is 5"
    assert deciding_limits("collect", "excluded", collect, PIN, ROW) == "exclude of the pin is ['docs/**']"
    both = deciding_limits("normalize", "near_duplicate", params, {}, ROW)
    assert "inside_source is 0.9" in both
    assert "inside_source" not in deciding_limits(
        "normalize", "near_duplicate", params, {}, {**ROW, "keeper_source": "other"}
    )
    of_chain = {**ROW, "keeper_source": ROW["source"], "keeper_path": f"{'a' * 40}:src/a.c"}
    assert deciding_limits("normalize", "near_duplicate", params, {}, of_chain).startswith("equal hunks: ")
