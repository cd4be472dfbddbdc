"""Detectors: a registered one is used everywhere, and none prints what it found."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pipeline.core.errors import ParamsError
from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub import scrub
from pipeline.stages.normalize.scrub.addresses.emails import find_emails
from pipeline.stages.normalize.scrub.detectors import DETECTORS, Detector, detector_versions, example
from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.scrub import Scrubber
from tests.pipeline.stages.normalize.conftest import Normalize
from tests.pipeline.stages.normalize.test_clean_source import code

AT = "@"


def test_a_finding_does_not_print_its_value() -> None:
    (found,) = find_emails(f"ada{AT}host.org")
    assert "ada" not in repr(found)


def find_shelf_marks(text: str) -> Iterator[Finding]:
    """Yield numbers that a library puts on its books, which no detector of the package will look for."""
    for match in re.finditer(r"\bSHELF[0-9]{20}\b", text):
        yield Finding(*match.span(), match[0])


NUMBER = "SHELF" + "8937040044" * 2
SHELF_MARK = Detector("shelf-mark", find_shelf_marks, "shelf-mark", example("// stands at {}", (NUMBER,)))


@pytest.mark.parametrize("word", ["", "x>", "shelf2", "shelf_mark", "Shelf", "-shelf", "shelf--mark", "shelf\n"])
def test_a_placeholder_that_audits_would_not_find_is_refused(word: str) -> None:
    with pytest.raises(ParamsError, match=r"detector shelf-mark: its placeholder is .* expected small letters"):
        replace(SHELF_MARK, placeholder=word)


def test_a_registered_detector_is_replaced_counted_and_found_by_the_gate(normalize: Normalize) -> None:
    text = f"// stands at {NUMBER}\n{code('x')}\n// again {NUMBER}\n"
    (before,) = normalize({"without": {"x.cpp": text}}).rows("without", "documents.parquet")
    assert NUMBER in before["text"]
    with DETECTORS.registered(SHELF_MARK):
        made = normalize({"a": {"x.cpp": text}})
        (row,) = made.rows("a", "documents.parquet")
        scrubber = Scrubber(ScrubParams())
        assert scrubber.scan("a.cpp", text) == 2
        assert scrubber.scrub("a.cpp", row["text"]).redactions == {}
        continued = scrubber.scrub("a.cpp", f"<redacted-shelf-mark-1> {NUMBER}").text
    assert row["text"].startswith("// stands at <redacted-shelf-mark-1>\n")
    assert row["text"].endswith("// again <redacted-shelf-mark-1>\n")
    assert row["num_redactions"] == 2
    assert continued == "<redacted-shelf-mark-1> <redacted-shelf-mark-2>"
    assert made.result.report.measures["num_redactions_shelf_mark"] == 2
    assert made.result.report.measures["num_unwaived_secrets"] == 0


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda each: each.name)
def test_the_example_of_a_detector_is_found_by_it_alone(detector: Detector, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the canary of it would be caught without it."""
    text, values = detector.example.text, detector.example.whole_values
    params = ScrubParams(redact_author_names=True)
    scrubber = Scrubber(params)
    assert not [value for value in values if value in scrubber.scrub("a.cpp", text).text]
    monkeypatch.setattr(scrub, "DETECTORS", [each for each in DETECTORS if each is not detector])
    others = Scrubber(params)
    assert [value for value in values if value in others.scrub("a.cpp", text).text]


def test_what_is_scrubbed_is_known_by_names_and_versions_and_not_by_modules() -> None:
    moved, raised = replace(SHELF_MARK, find=f"{__name__}:find_shelf_marks"), replace(SHELF_MARK, version=2)
    found = {}
    for name, entry in {"here": SHELF_MARK, "moved": moved, "raised": raised}.items():
        with DETECTORS.registered(entry):
            found[name] = detector_versions()

    assert found["here"] == found["moved"] == (*detector_versions(), "shelf-mark 1")
    assert found["raised"] == (*detector_versions(), "shelf-mark 2")


def test_a_detector_with_a_switch_that_does_not_exist_is_refused_by_name() -> None:
    unknown = replace(SHELF_MARK, param="redact_shelf_marks")
    with (
        DETECTORS.registered(unknown),
        pytest.raises(ParamsError, match=r"has no field redact_shelf_marks; expected one of"),
    ):
        Scrubber(ScrubParams())


def test_a_detector_is_switched_off_by_its_param() -> None:
    switches = {detector.param for detector in DETECTORS if detector.param}
    assert switches <= set(ScrubParams.model_fields)
    text = f'f("ada{AT}host.org", "8.8.8.8", "/home/ada/x");'
    scrubber = Scrubber(ScrubParams(**dict.fromkeys(switches, False)))
    assert scrubber.scrub("a.cpp", text).text == text
