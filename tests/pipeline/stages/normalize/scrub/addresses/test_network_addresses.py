"""Network addresses: where each begins and ends, and the numbers that are none."""

import pytest

from pipeline.stages.normalize.scrub.addresses.network_addresses import find_network_addresses

ADDRESSES = {
    "8.8.8.8": ["8.8.8.8"],
    "http://93.184.216.34:80/": ["93.184.216.34"],
    "2606:4700::1111": ["2606:4700::1111"],
    "[2606:4700::1111]:443": ["2606:4700::1111"],
    "256.1.1.1": [],
    "/* states (43.4.2.2 in the 802.3ad standard) */": [],
    '#define szOID_STREET_ADDRESS "2.5.4.9"': [],
    "* @param __g a generator (26.5.1.3).": [],
    "123.123.123.123 1.2.3.4": [],
    "1.2.3": [],
    "1.2.3.4.5": [],
    "v1.2.3.4": [],
    "version: 10.20.30.40": [],
    "2.3.4.5 130.140.150.160 129.1.1.1 123.45.67.8 129.97.123.22": ["129.97.123.22"],
    "192.88.99.1 192.88.98.1": ["192.88.98.1"],
    '"Linux 5.15.0.91"': [],
    '"Berlin 84.112.9.233"': ["84.112.9.233"],
    "[class.copy]/12.8.15.1": [],
    "2600::4": [],
    "948 /* 1.3.101.110 (OBJ_X25519) */, 1.3.101.113": [],
    "/* OBJECT IDENTIFIER { 1.3.132.35 } */": [],
    'EXPECT_EQ("8.8.4.4", node);': ["8.8.4.4"],
    "eq. 3.1.2.4, CUDA 11.8.0.89, nuget: Foo.Bar 6.0.0.12": [],
    "2001:db8::7": [],
    "100.64.0.1": [],
    "224.0.0.1 x": [],
    '"[MS-RDPBCGR] 2.2.1.19 Server PDU"': [],
    "Configures the port as in the 4.6.7.2 chapter": [],
    "IPAddress dns(93, 184, 216, 34);": ["93, 184, 216, 34"],
    "a::b::c": [],
    "2606:4700::11111": [],
    "3f:2a": [],
}


@pytest.mark.parametrize(("text", "found"), ADDRESSES.items())
def test_network_addresses_are_found_whole(text: str, found: list[str]) -> None:
    assert [text[each.start : each.end] for each in find_network_addresses(text)] == found


def test_two_spellings_of_one_address_are_one_value() -> None:
    text = "2606:4700:0:0::1111 2606:4700::1111"
    assert len({each.value for each in find_network_addresses(text)}) == 1
