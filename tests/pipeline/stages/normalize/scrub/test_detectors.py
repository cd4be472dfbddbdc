"""E-mail and network addresses and home folders: where each begins and ends. A registered detector is used everywhere."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pipeline.core.errors import ParamsError
from pipeline.stages.normalize.params import ScrubParams
from pipeline.stages.normalize.scrub.detectors import (
    DETECTORS,
    Detector,
    find_emails,
    find_local_paths,
    find_network_addresses,
)
from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.scrub import Scrubber
from tests.pipeline.stages.normalize.conftest import Normalize
from tests.pipeline.stages.normalize.test_clean_source import code

AT = "@"

EMAILS = {
    f"<a.b+c{AT}mail.host.co.uk>": [f"a.b+c{AT}mail.host.co.uk"],
    f"see x{AT}host.org.": [f"x{AT}host.org"],
    f"x{AT}host.org,y{AT}host.org": [f"x{AT}host.org", f"y{AT}host.org"],
    f"git{AT}github.com:a/b.git": [f"git{AT}github.com"],
    f"x{AT}host": [],
    f"{AT}param name.x": [],
    f"memcpy{AT}GLIBC_2.2.5": [],
    f"x{AT}example.com": [],
    f"x{AT}counterexample.com": [f"x{AT}counterexample.com"],
    f"{AT}host.org": [],
    f"jürgen{AT}müller.de": [f"jürgen{AT}müller.de"],
    f"邮箱x{AT}host.org请": [f"x{AT}host.org"],
}

ADDRESSES = {
    "8.8.8.8": ["8.8.8.8"],
    "http://93.184.216.34:80/": ["93.184.216.34"],
    "2606:4700::1111": ["2606:4700::1111"],
    "[2606:4700::1111]:443": ["2606:4700::1111"],
    "256.1.1.1": [],
    "1.2.3": [],
    "1.2.3.4.5": [],
    "v1.2.3.4": [],
    "version: 10.20.30.40": [],
    "2001:db8::7": [],
    "100.64.0.1": [],
    "224.0.0.1 x": ["224.0.0.1"],
    "a::b::c": [],
    "2606:4700::11111": [],
    "3f:2a": [],
}

PATHS = {
    "/home/ada/x": ["/home/ada/"],
    "/Users/ada.l/x": ["/Users/ada.l/"],
    "/home/ada": ["/home/ada"],
    "/home/ada|x": [],
    "/var/home/ada/x": ["/var/home/ada/"],
    "/mnt/c/Users/ada/x": ["/mnt/c/Users/ada/"],
    r"c:\users\ada\x": ["c:\\users\\ada\\"],
    "/api/home/ada/x": [],
    '"/home/ada"': ["/home/ada"],
    "/home/": [],
    "~/home/ada/x": [],
    r"C:\Users\ada\x": ["C:\\Users\\ada\\"],
    "d:/Users/ada/x": ["d:/Users/ada/"],
    r"C:\\Documents and Settings\\ada\\x": [r"C:\\Documents and Settings\\ada" + "\\\\"],
    r"C:\Windows\x": [],
}


@pytest.mark.parametrize(("text", "found"), EMAILS.items())
def test_e_mail_addresses_are_found_whole(text: str, found: list[str]) -> None:
    assert [text[each.start : each.end] for each in find_emails(text)] == found


@pytest.mark.parametrize(("text", "found"), ADDRESSES.items())
def test_network_addresses_are_found_whole(text: str, found: list[str]) -> None:
    assert [text[each.start : each.end] for each in find_network_addresses(text)] == found


@pytest.mark.parametrize(("text", "found"), PATHS.items())
def test_home_folders_are_found_with_their_separator(text: str, found: list[str]) -> None:
    assert [text[each.start : each.end] for each in find_local_paths(text)] == found


def test_two_spellings_of_one_address_are_one_value() -> None:
    text = "2606:4700:0:0::1111 2606:4700::1111"
    assert len({each.value for each in find_network_addresses(text)}) == 1


def test_a_finding_does_not_print_its_value() -> None:
    (found,) = find_emails(f"ada{AT}host.org")
    assert "ada" not in repr(found)


def find_ibans(text: str) -> Iterator[Finding]:
    """Yield account numbers of one country, without their check."""
    for match in re.finditer(r"\bDE[0-9]{20}\b", text):
        yield Finding(*match.span(), match[0])


IBAN = Detector("iban", find_ibans, "bank-account")


def test_a_registered_detector_is_replaced_counted_and_found_by_the_gate(normalize: Normalize) -> None:
    number = "DE" + "8937040044" * 2
    text = f"// pay to {number}\n{code('x')}\n// again {number}\n"
    (before,) = normalize({"without": {"x.cpp": text}}).rows("without", "documents.parquet")
    assert number in before["text"]
    with DETECTORS.registered(IBAN):
        made = normalize({"a": {"x.cpp": text}})
        (row,) = made.rows("a", "documents.parquet")
        with Scrubber(ScrubParams()) as scrubber:
            assert scrubber.scan("a.cpp", text) == 2
            assert scrubber.scrub("a.cpp", row["text"]).redactions == {}
            continued = scrubber.scrub("a.cpp", f"<redacted-bank-account-1> {number}").text
    assert row["text"].startswith("// pay to <redacted-bank-account-1>\n")
    assert row["text"].endswith("// again <redacted-bank-account-1>\n")
    assert row["num_redactions"] == 2
    assert continued == "<redacted-bank-account-1> <redacted-bank-account-2>"
    assert made.result.report.measures["num_redactions_bank_account"] == 2
    assert made.result.report.measures["num_unwaived_secrets"] == 0


def test_a_detector_with_a_switch_that_does_not_exist_is_refused_by_name() -> None:
    unknown = replace(IBAN, param="redact_accounts")
    with (
        DETECTORS.registered(unknown),
        pytest.raises(ParamsError, match=r"has no field redact_accounts; expected one of"),
    ):
        Scrubber(ScrubParams())


def test_a_detector_is_switched_off_by_its_param() -> None:
    switches = {detector.param for detector in DETECTORS if detector.param}
    assert switches <= set(ScrubParams.model_fields)
    text = f'f("ada{AT}host.org", "8.8.8.8", "/home/ada/x");'
    with Scrubber(ScrubParams(**dict.fromkeys(switches, False))) as scrubber:
        assert scrubber.scrub("a.cpp", text).text == text
