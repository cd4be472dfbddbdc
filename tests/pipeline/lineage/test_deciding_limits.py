"""Every reason for which a file can be dropped has a limit or a rule, told with its value in the recipe that was built."""

from dataclasses import replace

import pytest

from pipeline.contracts.drop_reasons import DropReason
from pipeline.core.params import Params
from pipeline.lineage.deciding_limits import deciding_limits
from pipeline.stages.collect.params import CollectParams
from pipeline.stages.normalize.duplicates.duplicates import Reason
from pipeline.stages.normalize.params import DropBands, FilterParams, NormalizeParams
from pipeline.stages.stages import STAGES

PIN = {"include": [], "exclude": ["docs/**"], "path_field": "path", "text_field": "text", "withdrawn": ["zlib/a.c"]}
ROW = {"source": "zlib", "num_bytes": 7, "keeper_source": "zlib"}

LICENSE_REASONS = ("license_refused", "license_quarantined", "license_unknown")


@pytest.mark.parametrize(
    ("stage", "reason", "params"),
    [("collect", reason, CollectParams()) for reason in (each.name for each in STAGES["collect"].drops)]
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


def test_a_drop_by_license_tells_the_rule_and_no_list_of_names() -> None:
    told = {reason: deciding_limits("normalize", reason, NormalizeParams(), {}, ROW) for reason in LICENSE_REASONS}
    assert told["license_refused"].startswith("the license policy allows the license of a file, and its exception; ")
    assert told["license_quarantined"].endswith("; normalize.licenses.license_evidence is inherited")
    assert told["license_unknown"] == "a license is an SPDX expression of known identifiers"
    assert "third_party" not in "".join(told.values())


def test_copies_are_the_reasons_of_duplicates() -> None:
    assert {each.name for each in STAGES["normalize"].drops if each.is_copy} == {*map(str, Reason)}


@pytest.mark.parametrize("reason", ["contaminated", "near_duplicate", "too_large", "long_lines", "anything"])
def test_a_reason_of_another_stage_has_no_limit_there_unless_it_is_declared(reason: str) -> None:
    """A program registers a stage that drops for a reason by a name that the package has too."""
    own = replace(STAGES["enrich"], name="narrow", drops=(DropReason("declared", ("x",)),))
    with STAGES.registered(own):
        assert deciding_limits("narrow", reason, Params(), {}, ROW) == ""
    ruled = replace(own, drops=(DropReason(reason, rule="it is narrow"),))
    with STAGES.registered(ruled):
        assert deciding_limits("narrow", reason, Params(), {}, ROW) == "it is narrow"
