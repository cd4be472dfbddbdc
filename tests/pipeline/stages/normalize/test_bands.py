"""Drops and languages outside their declared bands block the stage and are named; no rule is without a band."""

import re
from fractions import Fraction
from math import comb
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipeline.stages.normalize
from pipeline.build.recipes import QUICK, recipe_of
from pipeline.contracts.stage_report import StageReport
from pipeline.stages.normalize.bands import MAX_CHANCE, binomial_tail, drops_outside
from pipeline.stages.normalize.decided_files import UNSCRUBBABLE
from pipeline.stages.normalize.filters.filters import FILTERS
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
    notes = {
        name for text in sources for name in re.findall(r'(?:Drop\(\s*"|"(?=license_(?!detail|evidence)))(\w+)"', text)
    }
    copies = {"exact_duplicate", "near_duplicate", "copyleft_copy", "contained", "container"}
    assert {"binary", "license_refused", "contaminated"} <= notes
    assert notes | copies | {UNSCRUBBABLE} | set(FILTERS.names) == set(DropBands.model_fields)


@pytest.mark.parametrize(("limit", "outside"), [(0.01, set()), (0.002, {"drops_are_in_their_bands"})])
def test_a_rule_that_drops_more_than_its_band_blocks_the_stage_and_says_so(
    limit: float, outside: set[str], normalize: Normalize
) -> None:
    made = normalize(FILES, NormalizeParams(drop_bands=DropBands(too_small=limit)))
    assert failed(made) == outside
    assert made.result.blocked == bool(outside)
    band = f"its band ends at {limit:g}, as `normalize.drop_bands.too_small` of this build says"
    notes = (f"Dropped as too_small: 1 of 4 files, {band}.",)
    assert tuple(note.text for note in made.result.notes) == (notes if outside else ())
    assert [note.files for note in made.result.notes] == [(("a", "tiny.h"),)] * len(outside)


@given(st.integers(1, 60), st.integers(0, 1000).map(lambda part: part / 1000), st.data())
def test_the_tail_is_that_of_the_exact_distribution(num_trials: int, share: float, data: st.DataObject) -> None:
    num_found = data.draw(st.integers(0, num_trials))
    exact_share = Fraction(share)
    terms = (
        comb(num_trials, k) * exact_share**k * (1 - exact_share) ** (num_trials - k)
        for k in range(num_found, num_trials + 1)
    )
    exact = float(sum(terms))
    found = binomial_tail(num_found, num_trials, share)

    assert (found < MAX_CHANCE) == (exact < MAX_CHANCE) or exact == pytest.approx(MAX_CHANCE, rel=1e-6)
    if num_found > num_trials * share:
        assert found == pytest.approx(exact, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(
    ("num_found", "num_files", "limit", "is_outside"),
    [
        (440, 490, DropBands().generated, True),  # most of a small corpus
        (1, 1_000_000, 0.0, True),  # nothing is allowed
        (1, 1, 0.2, False),  # one file says little
        (3, 3, 0.2, True),
        (300, 1_000, 0.3, False),
        (30_500, 100_000, 0.3, True),  # half a percent too many is no chance among many
    ],
)
def test_a_band_holds_at_any_size(num_found: int, num_files: int, limit: float, is_outside: bool) -> None:
    report = StageReport(num_files, num_files - num_found, {"generated": num_found})

    assert bool(drops_outside(report, num_files, DropBands(generated=limit))) == is_outside


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
    assert tuple(note.text for note in made.result.notes) == notes
    assert failed(made) == ({"languages_are_in_their_bands"} if notes else set())


def test_the_bands_of_a_slice_say_nothing_about_other_pins(tmp_path: Path) -> None:
    assert QUICK.params.normalize.drop_bands.license_refused < 0.5
    assert recipe_of("quick", pins_file=tmp_path / "pins.toml").params.normalize.drop_bands == DropBands()
