"""Drops and languages outside their declared bands block the stage and are named; no rule is without a band."""

import re
from pathlib import Path

import pytest

import pipeline.stages.normalize
from pipeline.build.recipes import QUICK, params_of
from pipeline.stages.normalize.filters import FILTERS
from pipeline.stages.normalize.params import DropBands, NormalizeParams
from tests.pipeline.stages.normalize.conftest import Normalize
from tests.pipeline.stages.normalize.test_clean_source import code

FILES = {"a": {"x.cpp": code("x"), "y.c": code("y"), "z.h": code("z"), "tiny.h": "int a;\n"}}
FAILED = {"drops_are_in_their_bands", "languages_are_in_their_bands"}


def failed(made: object) -> set[str]:
    return {verdict.gate for verdict in made.result.verdicts if not verdict.passed}  # type: ignore[attr-defined]


def test_every_reason_in_the_code_has_a_band() -> None:
    folder = Path(pipeline.stages.normalize.__file__).parent
    sources = [path.read_text() for path in folder.rglob("*.py")]
    notes = {name for text in sources for name in re.findall(r'(?:Drop\(\s*"|"(?=license_))(\w+)"', text)}
    copies = {"exact_duplicate", "near_duplicate", "copyleft_copy"}
    assert {"binary", "license_refused", "contaminated"} <= notes
    assert notes | copies | set(FILTERS.names) == set(DropBands.model_fields) - {"min_num_files"}


@pytest.mark.parametrize(("limit", "outside"), [(0.25, set()), (0.24, {"drops_are_in_their_bands"})])
def test_a_rule_that_drops_more_than_its_band_blocks_the_stage_and_says_so(
    limit: float, outside: set[str], normalize: Normalize
) -> None:
    made = normalize(FILES, NormalizeParams(drop_bands=DropBands(min_num_files=4, too_small=limit)))
    assert failed(made) == outside
    assert made.result.blocked == bool(outside)
    notes = ("Dropped as too_small: 0.2500 of the files, its band ends at 0.24.",)
    assert made.result.notes == (notes if outside else ())


def test_few_files_are_judged_by_no_band(normalize: Normalize) -> None:
    assert not failed(normalize(FILES, NormalizeParams(drop_bands=DropBands(min_num_files=5, too_small=0.0))))


@pytest.mark.parametrize(
    ("bands", "notes"),
    [
        ({"c": (0.3, 0.4), "cpp": (0.0, 0.5)}, ()),
        ({"cpp": (0.5, 1.0)}, ("Source a: cpp is 0.3333 of its bytes, its band is 0.5 to 1.",)),
        ({"c_or_cpp": (0.0, 0.3)}, ("Source a: c_or_cpp is 0.3333 of its bytes, its band is 0 to 0.3.",)),
    ],
)
def test_a_language_outside_the_band_of_its_pin_blocks_the_stage_and_is_named(
    bands: dict[str, tuple[float, float]], notes: tuple[str, ...], normalize: Normalize
) -> None:
    made = normalize(FILES, pin_fields={"a": {"languages": bands}})
    assert made.result.notes == notes
    assert failed(made) == ({"languages_are_in_their_bands"} if notes else set())


def test_the_bands_of_a_slice_say_nothing_about_other_pins(tmp_path: Path) -> None:
    assert params_of(QUICK).normalize.drop_bands.license_refused < 0.5
    assert params_of(QUICK, tmp_path / "pins.toml").normalize.drop_bands == DropBands()
